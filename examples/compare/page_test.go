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

	"github.com/sluice-go/sluice/examples/compare/internal/model"
)

var screenshots = flag.String("screenshots", "", "`directory` to write pictures of the page to")

// shown are workloads of every kind of object, with many objects, and without reads.
const shown = "account,buffer,many"

// TestPage opens the page as it looks at a desk and on a telephone, by day and at
// night, and expects everything to be drawn, legible and quiet.
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

// finding is what the page's texts and figures look like to the script below.
type finding struct {
	Figures  []figure `json:"figures"`
	Cannot   []string `json:"cannot"`   // workload and model, where the page says why not
	Overflow []string `json:"overflow"` // what reaches beyond the screen
	Small    []string `json:"small"`    // texts that are
	Broken   int      `json:"broken"`   // attributes that are not numbers
}

// figure is a timeline or plot.
type figure struct {
	Name   string                          `json:"name"` // workload, and model or axis
	Bars   int                             `json:"bars"` // that can be seen
	Lines  int                             `json:"lines"`
	Areas  int                             `json:"areas"` // bands around lines
	Dots   int                             `json:"dots"`
	Want   struct{ Bars, Lines, Dots int } // at least, after what was measured
	Texts  int                             `json:"texts"`
	Width  float64
	Height float64
}

const drawAll = `(async () => {
	for (const e of document.querySelectorAll("[data-drawn]")) {
		e.scrollIntoView({block: "center", behavior: "instant"});
		for (let i = 0; i < 200 && !e.querySelector("svg"); i++) await new Promise(done => setTimeout(done, 10));
	}
	scrollTo({top: 0, behavior: "instant"});
})()`

const look = `(() => {
	const of = e => e.closest("[data-workload]").dataset.workload + "/" + (e.dataset.plot ?? e.closest("[data-model]").dataset.model);
	const want = e => {
		const w = workloads.find(w => w.workload === e.closest("[data-workload]").dataset.workload);
		if (e.dataset.plot) {
			const points = (e.dataset.plot === "callers" ? w.by_callers : w.by_read_share).filter(p => p.ops > 0);
			const models = new Set(points.map(p => p.model));
			return {Bars: 0, Dots: points.length, Lines: [...models].filter(m => points.filter(p => p.model === m).length > 1).length};
		}
		return {Bars: w.timelines.find(l => l.model === e.closest("[data-model]").dataset.model).bars.length, Lines: 0, Dots: 0};
	};
	const seen = e => { const b = e.getBoundingClientRect(); return b.width > 0 && b.height > 0; };
	const figures = [...document.querySelectorAll("[data-drawn]")].map(e => ({
		name: of(e),
		bars: [...e.querySelectorAll("[aria-label=bar] rect")].filter(seen).length,
		lines: [...e.querySelectorAll("[aria-label=line] path")].filter(p => (p.getAttribute("d") ?? "").includes("L")).length,
		areas: [...e.querySelectorAll("[aria-label=area] path")].filter(p => (p.getAttribute("d") ?? "").includes("L")).length,
		dots: [...e.querySelectorAll("[aria-label=dot] *")].filter(seen).length,
		Want: want(e),
		texts: e.querySelectorAll("text").length,
		Width: Math.max(...[...e.children].map(c => c.getBoundingClientRect().width)),
		Height: e.getBoundingClientRect().height,
	}));
	const cannot = workloads.flatMap(w => w.runs.filter(r => r.cannot).map(r => w.workload + "/" + r.model).filter(name => {
		const [workload, model] = name.split("/");
		return document.querySelector("[data-workload='" + workload + "'] [data-model='" + model + "']").textContent.includes("cannot: ");
	}));
	const overflow = [], small = [];
	if (document.documentElement.scrollWidth > innerWidth) overflow.push("the page: " + document.documentElement.scrollWidth);
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let n; (n = walker.nextNode());) {
		const e = n.parentElement;
		if (!n.data.trim() || !seen(e) || e.closest("script,style")) continue;
		if (parseFloat(getComputedStyle(e).fontSize) < 12) small.push(n.data.trim());
		const box = e.getBoundingClientRect();
		if (!e.closest(".scroll") && (box.right > innerWidth + 1 || box.left < -1)) overflow.push(n.data.trim() + ": " + box.right);
	}
	let broken = 0;
	for (const e of document.querySelectorAll("[data-drawn] svg *")) for (const a of e.attributes) if (/NaN|undefined|Infinity/.test(a.value)) broken++;
	return {figures, cannot, overflow, small, broken};
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
	picture(t, tab, s.name)
	for _, c := range complaints() {
		t.Error(c)
	}
	f.check(t, float64(s.width))
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

// picture writes a picture of the whole page, if pictures are wanted.
func picture(t *testing.T, tab context.Context, name string) {
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

// check expects a timeline for each model and the plots of each workload, and
// everything to be on the screen and legible.
func (f finding) check(t *testing.T, width float64) {
	t.Helper()
	figures := map[string]figure{}
	for _, g := range f.Figures {
		figures[g.Name] = g
		if g.Width < 200 || g.Width > width || g.Height < 150 || g.Texts < 3 {
			t.Errorf("%s is %.0f by %.0f pixels large, with %d texts", g.Name, g.Width, g.Height, g.Texts)
		}
	}
	for w := range strings.SplitSeq(shown, ",") {
		names := []string{"callers", "reads"}
		if w == "buffer" {
			names = names[:1]
		}
		for _, m := range model.All {
			names = append(names, m.Name)
		}
		for _, name := range names {
			if slices.Contains(f.Cannot, w+"/"+name) {
				continue
			}
			g, ok := figures[w+"/"+name]
			if g.Bars < g.Want.Bars || g.Lines < g.Want.Lines || g.Areas < g.Want.Lines || g.Dots < g.Want.Dots || g.Want.Bars+g.Want.Dots == 0 {
				t.Errorf("%s/%s is there: %t; it has %d bars, %d lines, %d bands and %d dots, want %+v", w, name, ok, g.Bars, g.Lines, g.Areas, g.Dots, g.Want)
			}
		}
	}
	if len(f.Overflow) > 0 || len(f.Small) > 0 || f.Broken > 0 {
		t.Errorf("off the screen: %q; too small: %q; %d attributes that are no numbers", f.Overflow, f.Small, f.Broken)
	}
}
