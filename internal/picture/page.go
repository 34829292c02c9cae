package picture

import (
	"embed"
	"encoding/json"
	"html/template"
	"io"
)

// Page is a page. What is empty is not shown.
type Page struct {
	Title    string    `json:"-"`
	Lead     string    `json:"-"` // the result, in a sentence
	Notes    []string  `json:"-"` // what the reader has to know
	Wrong    []string  `json:"-"` // what is wrong
	Result   *Matrix   `json:"result,omitempty"`
	Sections []Section `json:"sections"`
	Footer   []Entry   `json:"-"`
	About    []string  `json:"-"` // how it was measured
}

// Entry is a term and what it means.
type Entry struct{ Term, About string }

// Section is a part of a page: panels on one time axis, curves, and figures.
type Section struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Sentence string   `json:"-"` // what happened, and why
	Details  []string `json:"-"`
	Panels   []*Panel `json:"panels"`
	Columns  bool     `json:"columns"` // panels stand side by side, as far as there is room
	Charts   []Chart  `json:"charts,omitempty"`
	Tables   []Table  `json:"-"`
}

// Matrix is a heat map: a row for each section, a column for each thing that is compared. It shows
// one of several figures.
type Matrix struct {
	Columns []string `json:"columns"`
	Rows    []string `json:"rows"` // the IDs of sections
	Figures []Figure `json:"figures"`
}

// Figure is a figure of a matrix.
type Figure struct {
	Name  string `json:"name"`
	About string `json:"about"`
	Scale string `json:"scale"` // what the colors mean
	// Cells are by row, by column.
	Cells [][]Cell `json:"cells"`
}

// Cell is a figure, and how good it is: from 0 to 1, the best of its row.
type Cell struct {
	Text string  `json:"text"`
	More string  `json:"more"`
	Good float64 `json:"good"`
}

// Chart is a choice of curves.
type Chart struct {
	Name   string   `json:"name"`
	X      Axis     `json:"x"`
	Series []Series `json:"series"` // by name of the curve and of what it is drawn
}

// Axis is an axis of a chart.
type Axis struct {
	Label string `json:"label"`
	// Kind is "log" (by powers of 2), "share" (0 to 1) or "slower": a share of calls that were
	// slower, by powers of 10.
	Kind string `json:"kind"`
}

// Series are the curves of one figure.
type Series struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`
	Log    bool    `json:"log"`
	Top    float64 `json:"top,omitempty"`  // of a linear axis; 0 for the highest point
	Band   string  `json:"band,omitempty"` // what the bands are
	Curves []Curve `json:"curves"`
}

// Curve is the curve of one thing that is compared.
type Curve struct {
	Name   string  `json:"name"`
	Family int     `json:"family"`
	Points []Point `json:"points"`
}

// Point is a point of a curve. A band reaches from Low to High.
type Point struct {
	X    float64 `json:"x"`
	Y    float64 `json:"y"`
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
	Note string  `json:"note,omitempty"`
}

// Table is a table of figures.
type Table struct {
	Name    string
	Columns []Entry
	Rows    []Row
}

// Row is a row of a table.
type Row struct {
	Name    string
	Cells   []string
	Verdict string
	Wrong   bool
}

//go:embed assets
var assets embed.FS

// asset returns the text of a file of the page.
func asset(name string) string {
	text, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err)
	}
	return string(text)
}

var page = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"script": func(name string) template.JS { return template.JS(asset(name)) },
	"style":  func(name string) template.CSS { return template.CSS(asset(name)) },
}).ParseFS(assets, "assets/page.html"))

// Data returns what the page's program draws, as JSON, in which nothing can end the script that it
// is in: the encoder escapes <, > and &.
func (p *Page) Data() (template.JS, error) {
	text, err := json.Marshal(struct {
		*Page
		Causes []string `json:"causes"`
	}{p, causes[:]})
	return template.JS(text), err
}

// Charted reports whether some section has charts, for which libraries are needed.
func (p *Page) Charted() bool {
	for _, s := range p.Sections {
		if len(s.Charts) > 0 {
			return true
		}
	}
	return false
}

// Cell returns a cell of the first figure.
func (m *Matrix) Cell(row, column int) Cell { return m.Figures[0].Cells[row][column] }

// Section returns the section of a row of the result.
func (p *Page) Section(id string) Section {
	for _, s := range p.Sections {
		if s.ID == id {
			return s
		}
	}
	return Section{ID: id, Name: id}
}

// WriteTo writes the page as HTML that needs nothing but itself.
func (p *Page) WriteTo(w io.Writer) (int64, error) {
	c := &counter{w: w}
	err := page.Execute(c, p)
	return c.n, err
}

type counter struct {
	w io.Writer
	n int64
}

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
