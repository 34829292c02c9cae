//go:build chromium

// These tests look at the page in a browser: .ci/run runs them, and so does
//
//	go test -tags chromium ./internal/picture
//
// on a machine that has chromium.

package picture

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"net/url"
	"os"
	"path/filepath"
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
	"github.com/stretchr/testify/require"
)

var (
	screenshots = flag.String("screenshots", "", "`directory` to write pictures of the page to")
	update      = flag.Bool("update", false, "write the pictures in testdata instead of comparing with them")
)

// screen is how the page is looked at.
type screen struct {
	name   string
	width  int64
	scheme string // of colors
	media  string // "print", or "" for the screen
}

var screens = []screen{
	{"500-light", 500, "light", ""}, {"500-dark", 500, "dark", ""},
	{"900-light", 900, "light", ""}, {"900-dark", 900, "dark", ""},
	{"1600-light", 1600, "light", ""}, {"1600-dark", 1600, "dark", ""},
	{"print", 1050, "dark", "print"},
}

// TestThePageInABrowser expects everything to be drawn, legible and quiet on every screen, and to
// look like its picture in testdata.
func TestThePageInABrowser(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.html")
	var b bytes.Buffer
	_, err := fixed().WriteTo(&b)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, b.Bytes(), 0o666))
	browser := newBrowser(t)
	for _, s := range screens {
		t.Run(s.name, func(t *testing.T) {
			tab, complaints := open(t, browser, file, s)
			picture, regions := screenshot(t, tab), evaluate[[][]int](t, tab, regions)
			f := evaluate[finding](t, tab, look)
			f.check(t, s)
			if s.media == "" {
				keyboard(t, tab)
				pointer(t, tab, s.name)
			}
			compare(t, s.name, picture, regions)
			for _, c := range complaints() {
				t.Error(c)
			}
		})
	}
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

const drawAll = `(async () => {
	for (const e of document.querySelectorAll("[data-drawn]")) {
		e.scrollIntoView({block: "center", behavior: "instant"});
		for (let i = 0; i < 200 && !e.querySelector("svg"); i++) await new Promise(done => setTimeout(done, 10));
	}
	scrollTo({top: 0, behavior: "instant"});
	await new Promise(done => setTimeout(done, 100));
})()`

// open opens the page and has everything drawn. Complaints are those of the browser, and what the
// page has asked for elsewhere.
func open(t *testing.T, browser context.Context, file string, s screen) (tab context.Context, complaints func() []string) {
	tab, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	tab, cancel = context.WithTimeout(tab, 30*time.Second)
	t.Cleanup(cancel)
	complaints = listen(t, tab)
	require.NoError(t, chromedp.Do(tab,
		chromedp.EmulateViewport(s.width, 1000),
		chromedp.Func(func(ctx context.Context, page *chromedp.Target) error {
			scheme := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: s.scheme}
			_, err := cdp.Call(ctx, page, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: s.media, Features: []*emulation.MediaFeature{scheme}})
			return err
		}),
		chromedp.Navigate((&url.URL{Scheme: "file", Path: file}).String()),
		chromedp.Evaluate[chromedp.Void](drawAll, chromedp.EvalAwaitPromise),
	))
	return tab, complaints
}

func evaluate[R any](t *testing.T, tab context.Context, script string) R {
	t.Helper()
	r, err := chromedp.Run(tab, chromedp.Evaluate[R](script))
	require.NoError(t, err)
	return r
}

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
	require.NoError(t, err)
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// finding is what the page looks like to the script below.
type finding struct {
	Tops, Lefts, Heights []float64 // of the panels of the first section, and how high their drawings are
	Ticks                [][]string
	Runs, Waits, Strips  []int     // by panel: what is drawn
	Curves, Ends         []int     // by chart: lines, and labels at their ends
	EndGaps              []float64 // between labels
	Overflow, Small      []string  // texts beyond the screen; texts that are too small
	Contrast             []string  // texts that are hard to read
	Broken               int       // attributes that are not numbers
	Unnamed              []string  // controls without a name
	Heat                 []string  // the colors of the first row of the result
}

const look = `(() => {
	const seen = e => e.checkVisibility({contentVisibilityAuto: true, opacityProperty: true, visibilityProperty: true});
	const panels = [...document.querySelectorAll("[data-section='0'] [data-panel]")], lanes = panels.map(p => p.querySelector("[data-lanes]"));
	const all = [...document.querySelectorAll("[data-lanes]")], charts = [...document.querySelectorAll("[data-plot]")];
	const overflow = [], small = [], contrast = [], gaps = [];
	if (document.documentElement.scrollWidth > innerWidth) overflow.push("the page: " + document.documentElement.scrollWidth);
	const rgb = c => { const d = document.createElement("canvas").getContext("2d", {willReadFrequently: true}); d.fillStyle = c; d.fillRect(0, 0, 1, 1); return [...d.getImageData(0, 0, 1, 1).data].slice(0, 3); };
	const light = c => { const [r, g, b] = rgb(c).map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (c !== "rgba(0, 0, 0, 0)" && c !== "transparent") return c; } return "white"; };
	const known = new Map();
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let n; (n = walker.nextNode());) {
		const e = n.parentElement;
		if (!n.data.trim() || !seen(e) || e.closest("script,style,.unseen,option")) continue;
		const style = getComputedStyle(e), box = e.getBoundingClientRect();
		if (parseFloat(style.fontSize) < 12) small.push(n.data.trim());
		if (!e.closest(".scroll") && (box.right > innerWidth + 1 || box.left < -1)) overflow.push(n.data.trim() + ": " + box.right);
		const fill = e.closest("svg") ? style.fill : style.color;
		if (e.closest("svg")?.querySelector(".run") && fill === "rgb(255, 255, 255)") continue; // on a bar
		const key = fill + " on " + ground(e);
		if (!known.has(key)) { const [a, b] = [light(fill), light(ground(e))].sort((a, b) => b - a); known.set(key, (a + 0.05) / (b + 0.05)); }
		if (known.get(key) < 4.5) contrast.push(n.data.trim() + ": " + known.get(key).toFixed(1) + " " + key);
	}
	for (const c of charts) {
		const ys = [...c.querySelectorAll("text.end")].map(e => +e.getAttribute("y")).sort((a, b) => a - b);
		ys.forEach((y, i) => { if (i) gaps.push(y - ys[i - 1]); });
	}
	let broken = 0;
	for (const e of document.querySelectorAll("[data-drawn] svg *")) for (const a of e.attributes) if (/NaN|undefined|Infinity/.test(a.value)) broken++;
	return {
		Tops: lanes.map(p => p.getBoundingClientRect().top), Lefts: lanes.map(p => p.getBoundingClientRect().left), Heights: lanes.map(p => p.querySelector("svg").getBoundingClientRect().height),
		Ticks: panels.map(p => [...p.querySelectorAll("svg > text")].map(e => e.textContent).filter(t => /s$/.test(t))),
		Runs: all.map(p => p.querySelectorAll("rect.run").length), Waits: all.map(p => p.querySelectorAll("rect.wait").length), Strips: all.map(p => p.querySelectorAll("svg > g path").length),
		Curves: charts.map(c => c.querySelectorAll("g[aria-label=line] path").length), Ends: charts.map(c => c.querySelectorAll("text.end").length), EndGaps: gaps,
		Overflow: overflow, Small: small, Contrast: contrast, Broken: broken,
		Heat: [...document.querySelectorAll("[data-heat] tbody:first-of-type td[data-column]")].map(e => getComputedStyle(e).backgroundColor),
		Unnamed: [...document.querySelectorAll("button,select,input,[tabindex='0']")].filter(e => seen(e) && !(e.ariaLabel || e.labels?.length || e.textContent.trim())).map(e => e.outerHTML),
	};
})()`

func (f finding) check(t *testing.T, s screen) {
	t.Helper()
	require.Len(t, f.Tops, 3)
	for i := range 3 {
		if s.width >= 900 {
			require.Equal(t, f.Tops[0], f.Tops[i], "timelines begin at one height")
			require.Equal(t, i > 0, f.Lefts[i] > f.Lefts[max(0, i-1)], "side by side")
		} else {
			require.Equal(t, f.Lefts[0], f.Lefts[i], "one below the other")
		}
		require.Equal(t, f.Heights[0], f.Heights[i])
		require.Equal(t, f.Ticks[0], f.Ticks[i], "one time axis")
		require.NotEmpty(t, f.Ticks[0])
	}
	require.Len(t, f.Runs, 6)
	for i := range f.Runs {
		require.Positive(t, f.Runs[i])
		require.Positive(t, f.Waits[i])
		require.Positive(t, f.Strips[i])
	}
	require.Equal(t, []int{3, 3, 3}, f.Curves)
	require.Equal(t, []int{3, 3, 3}, f.Ends)
	for _, gap := range f.EndGaps {
		require.GreaterOrEqual(t, gap, 12., "labels do not overlap")
	}
	require.Empty(t, f.Overflow, "beyond the screen")
	if s.media == "" {
		require.Empty(t, f.Small)
	}
	require.Empty(t, f.Contrast)
	require.Zero(t, f.Broken)
	require.Empty(t, f.Unnamed)
	require.Len(t, f.Heat, 3)
	require.NotEqual(t, f.Heat[1], f.Heat[2], "what is better has another color")
}

// keyboard moves through a timeline by keys.
func keyboard(t *testing.T, tab context.Context) {
	t.Helper()
	const said = `document.querySelector("[data-said]").textContent`
	press := func(keys ...string) string {
		for _, k := range keys {
			evaluate[any](t, tab, fmt.Sprintf(`document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: %q, bubbles: true})), null`, k))
		}
		return evaluate[string](t, tab, said)
	}
	evaluate[any](t, tab, `document.querySelector("[data-lanes]").focus(), null`)
	first := press("Home")
	second := press("ArrowRight")
	require.NotEqual(t, first, second)
	require.Regexp(t, `(read|write) #\d+: .*(waited|ran) `, second)
	waits := ""
	for range 40 {
		if waits = press("ArrowRight"); strings.Contains(waits, "conflicts with") {
			break
		}
	}
	require.Contains(t, waits, "conflicts with")
	require.Positive(t, evaluate[int](t, tab, `document.querySelectorAll(".arrow").length`), "an arrow leads to what it waited for")
	require.NotEqual(t, waits, press("Enter"), "Enter follows it")
	before := evaluate[string](t, tab, `document.querySelector("[data-span]").textContent`)
	press("+")
	require.NotEqual(t, before, evaluate[string](t, tab, `document.querySelector("[data-span]").textContent`), "a key magnifies")
	press("-", "Escape")
	evaluate[any](t, tab, `document.activeElement.blur(), document.querySelector("[data-requests]").open = true, null`)
	require.Eventually(t, func() bool {
		return evaluate[int](t, tab, `document.querySelectorAll("[data-requests] tbody tr").length`) > 5
	}, 5*time.Second, 20*time.Millisecond, "requests are there as a table")
	evaluate[any](t, tab, `document.querySelector("[data-requests]").open = false, null`)
}

// pointer points at a request that waits.
func pointer(t *testing.T, tab context.Context, name string) {
	t.Helper()
	evaluate[any](t, tab, `(() => {
		const e = [...document.querySelectorAll("[data-lanes] rect.wait")].find(e => e.getBoundingClientRect().width > 20);
		e.scrollIntoView({block: "center", behavior: "instant"});
		const b = e.getBoundingClientRect();
		e.dispatchEvent(new PointerEvent("pointermove", {bubbles: true, pointerType: "mouse", clientX: b.left + b.width / 2, clientY: b.top + b.height / 2}));
		return null;
	})()`)
	require.False(t, evaluate[bool](t, tab, `document.querySelector("[data-tip]").hidden`))
	tip := evaluate[string](t, tab, `document.querySelector("[data-tip]").textContent`)
	require.Regexp(t, `conflicts with|comes first|is false`, tip)
	require.Positive(t, evaluate[int](t, tab, `document.querySelectorAll(".arrow").length`))
	if *screenshots != "" {
		picture, err := chromedp.Run(tab, chromedp.CaptureScreenshot())
		if err == nil {
			os.WriteFile(filepath.Join(*screenshots, name+"-tip.png"), picture, 0o666)
		}
	}
}

func screenshot(t *testing.T, tab context.Context) []byte {
	t.Helper()
	picture, err := chromedp.Run(tab, chromedp.FullScreenshot(100))
	require.NoError(t, err)
	return picture
}

// coarse is how many pixels of the page one of its picture in testdata stands for, in each direction.
const coarse = 10

// regions are the drawings of the page: where they are depends on its fonts, but not how they look.
const regions = `[...document.querySelectorAll("[data-lanes] svg, [data-plot] svg")].map(e => {
	const b = e.getBoundingClientRect();
	return [b.left + scrollX, b.top + scrollY, b.width, b.height].map(Math.round);
})`

// compare compares the drawings of a picture of the page with those in testdata, so coarse that
// the shapes of letters do not matter.
func compare(t *testing.T, name string, picture []byte, regions [][]int) {
	t.Helper()
	if *screenshots != "" {
		require.NoError(t, os.WriteFile(filepath.Join(*screenshots, name+".png"), picture, 0o666))
	}
	fine, err := png.Decode(bytes.NewReader(picture))
	require.NoError(t, err)
	got := shrink(fine, regions)
	golden := filepath.Join("testdata", name+".png")
	if *update {
		var b bytes.Buffer
		require.NoError(t, png.Encode(&b, got))
		require.NoError(t, os.MkdirAll("testdata", 0o777))
		require.NoError(t, os.WriteFile(golden, b.Bytes(), 0o666))
		return
	}
	text, err := os.ReadFile(golden)
	require.NoError(t, err, "run the test with -update, and look at what it writes")
	want, err := png.Decode(bytes.NewReader(text))
	require.NoError(t, err)
	require.Equal(t, want.Bounds(), got.Bounds(), "as large as before: else look at it with -screenshots, and run the test with -update if that is meant")
	const far = .004
	share := apart(got, want)
	if share > far {
		t.Errorf("of the drawings of %s, %.1f %% look otherwise than in its picture: look at it with -screenshots, and run the test with -update if that is meant", name, 100*share)
	}
	t.Logf("%.2f %% look otherwise", 100*share)
}

// shrink returns coarse pictures of the regions, one below the other.
func shrink(fine image.Image, regions [][]int) *image.RGBA {
	width, height := 0, 0
	for _, r := range regions {
		width = max(width, r[2]/coarse)
		height += r[3]/coarse + 1
	}
	small := image.NewRGBA(image.Rect(0, 0, width, height))
	top := 0
	for _, r := range regions {
		for y := range r[3] / coarse {
			for x := range r[2] / coarse {
				var sum [3]uint32
				for i := range coarse * coarse {
					r, g, b, _ := fine.At(r[0]+x*coarse+i%coarse, r[1]+y*coarse+i/coarse).RGBA()
					sum[0], sum[1], sum[2] = sum[0]+r>>8, sum[1]+g>>8, sum[2]+b>>8
				}
				const n = coarse * coarse
				small.SetRGBA(x, top+y, color.RGBA{uint8(sum[0] / n), uint8(sum[1] / n), uint8(sum[2] / n), 255})
			}
		}
		top += r[3]/coarse + 1
	}
	return small
}

// apart returns the share of pixels that are clearly apart in two pictures of one size, of those that
// are not ground in both.
func apart(a, b image.Image) float64 {
	const clearly = 40 // levels of 255
	ground := a.At(a.Bounds().Dx()-1, 0)
	other, drawn := 0, 0
	for y := range a.Bounds().Dy() {
		for x := range a.Bounds().Dx() {
			if a.At(x, y) == ground && b.At(x, y) == ground {
				continue
			}
			drawn++
			r1, g1, b1, _ := a.At(x, y).RGBA()
			r2, g2, b2, _ := b.At(x, y).RGBA()
			for _, d := range [][2]uint32{{r1, r2}, {g1, g2}, {b1, b2}} {
				if math.Abs(float64(d[0]>>8)-float64(d[1]>>8)) > clearly {
					other++
					break
				}
			}
		}
	}
	return float64(other) / float64(max(1, drawn))
}
