package report

import (
	"embed"
	"encoding/json"
	"html/template"
	"io"

	"github.com/sluice-go/sluice/examples/compare/internal/model"
)

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

// HTML writes the report as a page that needs nothing but itself.
func (r *Report) HTML(w io.Writer, models []*model.Model) error {
	return page.Execute(w, pageOf(r, models))
}

// pageContent is what the page shows.
type pageContent struct {
	*Report
	Families []familyContent
	Columns  []column
	Threads  string
	Cores    string
	Sections []section
	Data     template.JS
}

// familyContent is a pattern of the text, and its models.
type familyContent struct {
	Name   model.Family
	About  string
	Models []*model.Model
}

// section is a workload on the page.
type section struct {
	*Workload
	Rows []tableRow
}

type tableRow struct {
	Row
	Cells   []string
	Verdict string
}

func pageOf(r *Report, models []*model.Model) pageContent {
	p := pageContent{Report: r, Columns: columns, Threads: threadsText, Cores: r.coresText(), Data: data(r)}
	for _, f := range model.Families {
		c := familyContent{Name: f.Name, About: f.About}
		for _, m := range models {
			if m.Family == f.Name {
				c.Models = append(c.Models, m)
			}
		}
		if len(c.Models) > 0 {
			p.Families = append(p.Families, c)
		}
	}
	for _, w := range r.Workloads {
		s := section{Workload: w}
		for _, row := range w.Runs {
			s.Rows = append(s.Rows, tableRow{row, row.cells(), row.verdict()})
		}
		p.Sections = append(p.Sections, s)
	}
	return p
}

// data returns what the page's program draws, as JSON, in which nothing can end the
// script that it is in: the encoder escapes <, > and &.
func data(r *Report) template.JS {
	type drawn struct {
		*Workload
		Lines []timeline `json:"timelines"`
	}
	all := []drawn{}
	for _, w := range r.Workloads {
		all = append(all, drawn{w, w.Lines})
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err) // figures are finite numbers
	}
	return template.JS(text)
}
