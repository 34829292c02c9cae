// Package timeline records what happens at shared objects of a program, and draws it: which
// requests wait, for what, for which other request, and which run.
//
//	recording := timeline.New()
//	table, err := activeobject.New(system, tables, &Table{}, recording.Option())
//	…
//	err = recording.Save("page.html")
//
// The page shows each object on one time axis. The color of a wait is its reason: a guard that is
// false, a conflict with what runs, another request that comes first, no thread. Pointing at it, or
// moving there by the arrow keys, shows the reason in words and an arrow to the request that it
// waited for. Recording.Save writes a trace for ui.perfetto.dev instead if the file's name ends in
// .json.
//
// The reasons are those of Object.Explain, taken whenever the object has settled: exactly those
// that counted, and not a sample. An object that is recorded has no fast path, so it is slower: look at the order of things
// and at waits, and measure times without. Objects that are not recorded are as fast as ever.
//
// Programs with a flag for it have Flag:
//
//	trace := timeline.NewFlag("trace")
//	flag.Parse()
//	table, err := activeobject.New(system, tables, &Table{}, trace.Options()...)
//	…
//	err = trace.Save()
package timeline
