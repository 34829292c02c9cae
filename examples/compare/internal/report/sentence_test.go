package report

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/examples/compare/internal/model"
	"github.com/sluice-go/sluice/examples/compare/internal/trace"
)

// row is the result of a model whose figures are these.
func row(name string, family model.Family, ops, ratio float64, blocked, running int) Row {
	return Row{
		Model: name, Family: family, Ops: int64(ops), OpsPerSec: ops, Ratio: ratio, CPU: 4250, OK: true,
		Threads: trace.Threads{Used: running, Blocked: blocked, Running: running},
	}
}

func TestTheSentenceSaysWhatTheFiguresSay(t *testing.T) {
	perRequest := row("monitor-spawned", model.PerRequest, 3500, 1, 8, 8)
	perObject := row("dedicated", model.PerObject, 800, .23, 0, 1)
	both := row("sync-spawned", model.Synchronizer, 3600, 1.03, 0, 8)
	wrong := both
	wrong.OK = false
	fair := perObject
	fair.OpsPerSec, fair.Ratio, fair.Threads.Used, fair.Threads.Running = 3550, 1.01, 64, 8
	for name, test := range map[string]struct {
		w    Workload
		want string
	}{
		"one is slower": {Workload{Objects: 1, Runs: []Row{perRequest, perObject, both}, body: time.Millisecond},
			"thread-per-object ran one body at a time, 0.23 ×; thread-per-request ran 8 at once and blocked 8 threads; the Synchronizer ran 8 at once and blocked none, 1.03 ×."},
		"all alike": {Workload{Objects: 64, Runs: []Row{perRequest, fair, both}, body: time.Millisecond},
			"all within 10 %: thread-per-request ran 8 at once and blocked 8 threads; thread-per-object ran 8 at once and kept 64 threads, 1.01 ×; the Synchronizer ran 8 at once and blocked none, 1.03 ×."},
		"short bodies": {Workload{Objects: 1, Runs: []Row{perRequest, both}},
			"bodies take no time, so handing over is the cost, in CPU a call: thread-per-request 4.25 µs, blocked 8 threads; the Synchronizer 4.25 µs, blocked none, 1.03 ×."},
		"the fastest of a family": {Workload{Objects: 1, Runs: []Row{perRequest, row("monitor", model.PerRequest, 3900, 1.1, 7, 8)}, body: time.Millisecond},
			"monitor ran 8 at once and blocked 7 threads, 1.10 ×."},
		"wrong":   {Workload{Objects: 1, Runs: []Row{perRequest, wrong}, body: time.Millisecond}, "thread-per-request ran 8 at once and blocked 8 threads."},
		"nothing": {Workload{}, "nothing was measured that is right."},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, plain(test.w.Sentence()))
		})
	}
}

func plain(s string) string { return strings.ReplaceAll(s, noBreak, " ") }
