package coroutine
import ("testing";"context";"github.com/stretchr/testify/require";"iter")
var _ = iter.Pull[int]
func TestFirst(t *testing.T){
 for _, o := range [][]Option{nil,{Workers(1)},{Workers(4)}} {
	s, err := NewScheduler(o...)
	require.NoError(t, err)
	q, _ := NewQueue[int](s, 3)
	sum := 0
	p, _ := s.Go(nil, func(c *Coroutine) error { for i := range 1000 { if err := q.BlockingEnqueue(c, i); err != nil {return err} }; return nil })
	g, _ := s.Go(nil, func(c *Coroutine) error { for range 1000 { x, err := q.BlockingDequeue(c); if err != nil {return err}; sum += x }; return nil })
	if o == nil { for { st := s.RunNextUnblockedRoutine(); if st == NoRoutines {break}; if st == SomeRoutinesBlocked { t.Fatal("stuck") } } }
	require.NoError(t, p.Await(context.Background()))
	require.NoError(t, g.Await(context.Background()))
	require.Equal(t, 499500, sum)
	require.NoError(t, s.Close(context.Background()))
 }
}
func BenchmarkYield(b *testing.B) {
	for _, n := range []int{1,2} {
	b.Run("", func(b *testing.B){
	s, _ := NewScheduler(Workers(n))
	var cs []*Coroutine
	for range 2 { c, _ := s.Go(nil, func(c *Coroutine) error { for range b.N/2 { c.Yield() }; return nil }); cs = append(cs, c) }
	for _, c := range cs { c.Await(context.Background()) }
	s.Close(context.Background())
	})
	}
}
func BenchmarkQueue1(b *testing.B) {
	for _, n := range []int{1,2} {
	b.Run("", func(b *testing.B){
	s, _ := NewScheduler(Workers(n))
	q, _ := NewQueue[int](s, 1)
	p, _ := s.Go(nil, func(c *Coroutine) error { for i := range b.N/2 { q.BlockingEnqueue(c, i) }; return nil })
	g, _ := s.Go(nil, func(c *Coroutine) error { for range b.N/2 { q.BlockingDequeue(c) }; return nil })
	p.Await(context.Background())
	g.Await(context.Background())
	s.Close(context.Background())
	})
	}
}
func BenchmarkChan(b *testing.B) {
	a, z := make(chan int), make(chan int)
	go func() { for v := range a { z <- v }; close(z) }()
	for range b.N/2 { a <- 1; <-z }
	close(a)
}
