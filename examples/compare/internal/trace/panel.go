package trace

import "github.com/sluice-go/sluice/internal/picture"

// Panel returns a picture of the spans of a run. It does not show what requests waited for.
func Panel(spans []Span, rule Rule, operations []string) *picture.Panel {
	p := &picture.Panel{Operations: operations, Objects: []string{""}}
	never := func(at int64) int64 {
		if at == 0 {
			return picture.Never
		}
		return at
	}
	for i, held := range Held(spans, rule) {
		s := &spans[i]
		p.Requests = append(p.Requests, picture.Request{
			Op: s.Op, Arrived: s.Arrived, Held: never(held), Started: never(s.Started), Ended: never(s.Ended), By: picture.None,
		})
		p.Length = max(p.Length, s.Arrived, s.Ended)
	}
	p.Arrange()
	return p
}
