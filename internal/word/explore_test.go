package word

import "fmt"

// callers is how many goroutines a model has.
const callers = 4

// explore walks through all interleavings of the callers' steps from a first state. Step makes the
// next step of a caller, and reports false if there is none now; check says what is wrong with a
// state, which is the last if no caller can go on. Explore returns how many states there are, and
// what is wrong with one of them.
func explore[S comparable](first S, step func(s *S, i int) bool, check func(s *S, last bool) string) (states int, problem string) {
	seen, todo := map[S]bool{first: true}, []S{first}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		last := true
		for i := range callers {
			next := s
			if !step(&next, i) {
				continue
			}
			last = false
			if !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
		if problem := check(&s, last); problem != "" {
			return len(seen), fmt.Sprintf("%s: %+v", problem, s)
		}
	}
	return len(seen), ""
}
