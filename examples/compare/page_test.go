//go:build chromium

// These tests look at the page in a browser: .ci/run runs them, and so does
//
//	go test -tags chromium -run Page ./examples/compare
//
// on a machine that has chromium.

package main

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var screenshots = flag.String("screenshots", "", "`directory` to write pictures of the page to")

// shown are workloads of every kind of object, with many objects, and without reads.
const shown = "account,buffer,many"

// TestPage opens the page at a desk and on a telephone, by day and at night, and expects everything
// to be drawn, and the browser not to complain. How it looks test those of the package picture, with
// data that is always the same.
func TestPage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.html")
	var stdout, stderr strings.Builder
	args := []string{"-html", file, "-duration", "60ms", "-workloads", shown}
	if code := run(t.Context(), args, &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d: %s%s", code, &stdout, &stderr)
	}
	browser := newBrowser(t)
	for _, screen := range []screen{{"desk", 1300, 900, "light"}, {"desk-dark", 1300, 900, "dark"}, {"phone", 390, 844, "light"}, {"phone-dark", 390, 844, "dark"}} {
		t.Run(screen.name, func(t *testing.T) { lookAt(t, browser, file, screen) })
	}
}

type screen struct {
	name          string
	width, height int64
	scheme        string
}

// newBrowser starts chromium.
func newBrowser(t *testing.T) context.Context {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.ExecPath("chromium"))
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	browser, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	if err := chromedp.Do(browser); err != nil {
		t.Fatalf("starting chromium: %v", err)
	}
	return browser
}

// finding is what the page looks like to the script below.
type finding struct {
	Drawn    []string `json:"drawn"`    // workload and timeline or curve, of those with something in them
	Overflow []string `json:"overflow"` // what reaches beyond the screen
	Broken   int      `json:"broken"`   // attributes that are not numbers
	Heat     int      `json:"heat"`     // cells of the result
}

const drawAll = `(async () => {
	for (const e of document.querySelectorAll("[data-drawn]")) {
		e.scrollIntoView({block: "center", behavior: "instant"});
		for (let i = 0; i < 200 && !e.querySelector("svg"); i++) await new Promise(done => setTimeout(done, 10));
	}
	scrollTo({top: 0, behavior: "instant"});
})()`

const look = `(() => {
	const overflow = [], drawn = [];
	if (document.documentElement.scrollWidth > innerWidth) overflow.push("the page: " + document.documentElement.scrollWidth);
	for (const s of document.querySelectorAll("[data-section]")) {
		for (const p of s.querySelectorAll("[data-panel]")) if (p.querySelector(".run") && p.querySelector(".hit")) drawn.push(s.id + "/" + p.querySelector("b").textContent);
		for (const c of s.querySelectorAll("[data-chart]")) if (c.querySelector("text.end") && c.querySelector("g[aria-label=line] path")) drawn.push(s.id + "/" + c.querySelector("[data-title]").textContent.split(";")[0]);
	}
	let broken = 0;
	for (const e of document.querySelectorAll("[data-drawn] svg *")) for (const a of e.attributes) if (/NaN|undefined|Infinity/.test(a.value)) broken++;
	return {drawn, overflow, broken, heat: document.querySelectorAll("[data-heat] td[data-column]").length};
})()`

func lookAt(t *testing.T, browser context.Context, file string, s screen) {
	tab, cancel := chromedp.NewContext(browser)
	defer cancel()
	tab, cancel = context.WithTimeout(tab, 2*time.Minute)
	defer cancel()
	complaints := listen(t, tab)
	err := chromedp.Do(tab,
		chromedp.EmulateViewport(s.width, s.height),
		chromedp.Func(func(ctx context.Context, page *chromedp.Target) error {
			scheme := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: s.scheme}
			_, err := cdp.Call(ctx, page, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{scheme}})
			return err
		}),
		chromedp.Navigate((&url.URL{Scheme: "file", Path: file}).String()),
		chromedp.Evaluate[chromedp.Void](drawAll, chromedp.EvalAwaitPromise),
	)
	if err != nil {
		t.Fatal(err)
	}
	f, err := chromedp.Run(tab, chromedp.Evaluate[finding](look))
	if err != nil {
		t.Fatal(err)
	}
	takePicture(t, tab, s.name)
	for _, c := range complaints() {
		t.Error(c)
	}
	f.check(t)
}

// listen returns a function that returns of what the browser has complained until
// then, and what it has asked for elsewhere.
func listen(t *testing.T, tab context.Context) func() []string {
	var mu sync.Mutex
	var all []string
	add := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, fmt.Sprintf(format, args...))
	}
	err := chromedp.Listen(tab, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			add("exception: %s", e.ExceptionDetails.Exception.Description)
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
				add("console: %s: %s", e.Type, e.Args[0].Value)
			}
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError {
				add("log: %s", e.Entry.Text)
			}
		case *network.EventRequestWillBeSent:
			if u := e.Request.URL; !strings.HasPrefix(u, "file:") && !strings.HasPrefix(u, "data:") {
				add("the page asks for %s", u)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// takePicture writes a picture of the whole page, if pictures are wanted.
func takePicture(t *testing.T, tab context.Context, name string) {
	if *screenshots == "" {
		return
	}
	image, err := chromedp.Run(tab, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(*screenshots, name+".png"), image, 0o666)
	}
	if err != nil {
		t.Error(err)
	}
}

// check expects a timeline of each model and the curves of each workload, and everything to be on
// the screen.
func (f finding) check(t *testing.T) {
	t.Helper()
	workloads := strings.Split(shown, ",")
	for _, w := range workloads {
		for _, want := range []string{"thread-per-request", "thread-per-object", "Synchronizer", "Throughput over callers", "Throughput over the share of reads", "Latency by share of calls that stayed below"} {
			if w == "buffer" && strings.HasSuffix(want, "reads") {
				continue
			}
			if !slices.Contains(f.Drawn, w+"/"+want) {
				t.Errorf("%s/%s is not drawn; drawn are %q", w, want, f.Drawn)
			}
		}
	}
	if f.Heat != 3*len(workloads) {
		t.Errorf("the result has %d cells", f.Heat)
	}
	if len(f.Overflow) > 0 || f.Broken > 0 {
		t.Errorf("off the screen: %q; %d attributes that are no numbers", f.Overflow, f.Broken)
	}
}
