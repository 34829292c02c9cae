package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-go/sluice/activeobject/objecttest"
	"github.com/sluice-go/sluice/actor"
)

func TestMain(m *testing.M) { objecttest.Main(m) }

var quiet = slog.New(slog.DiscardHandler)

// faulty is a journal that breaks its hall now and then: by turns before the ticket is
// in the journal, and after.
type faulty struct {
	Journal
	mu      sync.Mutex
	n       int
	broken  int
	at      map[int]func() // called at the n-th ticket
	healthy bool
}

func (j *faulty) Append(t Ticket) error {
	j.mu.Lock()
	j.n++
	n, at := j.n, j.at[j.n]
	fail := !j.healthy && n%5 == 0
	if fail {
		j.broken++
	}
	j.mu.Unlock()
	if at != nil {
		at()
	}
	if fail && n%10 == 0 {
		panic("before the ticket is in the journal")
	}
	if err := j.Journal.Append(t); err != nil {
		return err
	}
	if fail {
		panic("after the ticket is in the journal")
	}
	return nil
}

// service is a shop on a loopback address, with who uses it.
type service struct {
	t       *testing.T
	shop    *Shop
	journal *faulty
	file    *FileJournal
	path    string
	url     string
	client  http.Client
	end     context.CancelFunc // the signal
	ended   chan error

	mu    sync.Mutex
	taken map[string]bool // the requests that the server has taken, and whether they have been answered
}

func start(t *testing.T, events map[string][]string) *service {
	s := &service{t: t, path: filepath.Join(t.TempDir(), "tickets"), ended: make(chan error, 1), taken: map[string]bool{}}
	var err error
	if s.file, err = OpenJournal(s.path, quiet); err != nil {
		t.Fatal(err)
	}
	s.journal = &faulty{Journal: s.file, at: map[int]func(){}}
	actors := proto.NewActorSystem(proto.WithLoggerFactory(func(*proto.ActorSystem) *slog.Logger { return quiet }))
	system := actor.NewSystem(actor.Actors(actors), actor.Logger(quiet))
	if s.shop, err = NewShop(system, s.journal, events, time.Hour); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + listener.Addr().String()
	s.client.Transport = &http.Transport{DisableKeepAlives: true}
	handler := Handler(s.shop, system.Explain, quiet)
	note := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.note(r.Header.Get("Request"), false)
		handler.ServeHTTP(w, r)
	})
	ctx, end := context.WithCancel(t.Context())
	s.end = end
	go func() {
		err := serve(ctx, listener, note, s.shop, time.Minute)
		actors.Shutdown()
		s.ended <- err
	}()
	t.Cleanup(func() {
		end()
		s.ended <- <-s.ended
		s.file.Close()
	})
	return s
}

func (s *service) note(request string, answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken[request] = answered
}

// ask makes a request. It returns an error if there was no answer.
func (s *service) ask(ctx context.Context, id, method, path, body string) (status int, a Answer, err error) {
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return 0, a, err
	}
	r.Header.Set("Request", id)
	w, err := s.client.Do(r)
	if err != nil {
		return 0, a, err
	}
	defer w.Body.Close()
	if err := json.NewDecoder(w.Body).Decode(&a); err != nil {
		return 0, a, err
	}
	s.note(id, true)
	if again := w.Header.Get("Retry-After") != ""; again != (w.StatusCode >= http.StatusServiceUnavailable) {
		return 0, a, fmt.Errorf("status %d, and Retry-After: %v", w.StatusCode, again)
	}
	return w.StatusCode, a, nil
}

// buyer wants one seat of an event, whichever.
type buyer struct {
	*service
	name     string
	requests int
	fickle   bool // gives back the first that he gets
}

func (b *buyer) ask(method, path, body string) (int, Answer, error) {
	b.requests++
	return b.service.ask(b.t.Context(), fmt.Sprint(b.name, b.requests), method, path, body)
}

// buy buys a seat. He asks for the seats in turn, beginning with a certain one, until he
// has got one or all are sold. An error means that there was no answer, or a wrong one.
func (b *buyer) buy(event string, seats []string, first int) (got *Ticket, err error) {
	refused := 0
	for i := first; refused < len(seats); {
		seat := seats[i%len(seats)]
		status, a, err := b.ask("POST", "/events/"+event+"/orders", fmt.Sprintf(`{"buyer": %q, "seat": %q}`, b.name, seat))
		switch {
		case err != nil:
			return nil, err
		case status == http.StatusConflict: // sold
			refused++
			i++
			continue
		case status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout: // too many, or the hall has ended
			continue
		case status != http.StatusOK || a.Status != Held:
			return nil, fmt.Errorf("%s of %s: %d, %+v", seat, event, status, a)
		}
		order, t := "/orders/"+a.Order, Ticket{Order: a.Order, Event: event, Seat: seat, Buyer: b.name}
		method, path := "POST", order+"/pay"
		if b.fickle {
			method, path, b.fickle = "DELETE", order, false
		}
		for {
			status, a, err = b.ask(method, path, "")
			if err != nil {
				return nil, err
			}
			if status < 500 { // or else the hall has failed, and nothing is sold: again
				break
			}
		}
		switch {
		case status != http.StatusOK:
			return nil, fmt.Errorf("%s %s: %d, %+v", method, path, status, a)
		case a.Status == Sold:
			return &t, nil
		case a.Status != Lost && a.Status != Canceled:
			return nil, fmt.Errorf("%s %s: %+v", method, path, a)
		}
	}
	return nil, nil
}

// tickets returns them in a certain order.
func tickets(lists ...[]Ticket) []Ticket {
	return slices.SortedFunc(slices.Values(slices.Concat(lists...)), func(a, b Ticket) int { return strings.Compare(a.Order, b.Order) })
}

// check compares the journal, in memory and as a file, with the answers.
func (s *service) check(answered []Ticket, events ...string) {
	s.t.Helper()
	text, err := os.ReadFile(s.path)
	if err != nil {
		s.t.Fatal(err)
	}
	reread := opened(s.t, text)
	defer reread.Close()
	sold := map[string]bool{}
	for _, j := range []Journal{s.file, reread} {
		clear(sold)
		var all []Ticket
		for _, event := range events {
			all = append(all, j.Sold(event)...)
		}
		for _, t := range all {
			if sold[t.Event+t.Seat] {
				s.t.Errorf("seat %s of %s is sold twice", t.Seat, t.Event)
			}
			sold[t.Event+t.Seat] = true
		}
		if all, answered := tickets(all), tickets(answered); !slices.Equal(all, answered) {
			s.t.Errorf("in the journal are\n%v, the answers were\n%v", all, answered)
		}
	}
}

// However often halls fail or end meanwhile: every seat is sold, to one who was told so,
// and everybody else was told that all is sold.
func TestNoSeatIsSoldTwiceAndNoneForgotten(t *testing.T) {
	events := map[string][]string{"gala": seats("ABCD", 10), "matinee": seats("AB", 10)}
	s := start(t, events)
	for i, event := range map[int]string{8: "gala", 17: "matinee", 23: "gala", 37: "gala", 52: "gala"} {
		s.journal.at[i] = func() { s.hall(event).Stop() } // in the midst of a sale, perhaps its own
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var got []Ticket
	for i := range 200 {
		event := "gala"
		if i%3 == 0 {
			event = "matinee"
		}
		b := &buyer{service: s, name: fmt.Sprintf("buyer %d ", i), fickle: i%4 == 0}
		all.Go(func() {
			ticket, err := b.buy(event, events[event], i)
			if err != nil {
				t.Errorf("%s: %v", b.name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if ticket != nil {
				got = append(got, *ticket)
			}
		})
	}
	all.Wait()
	s.end()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	s.ended <- nil
	if len(got) != 60 {
		t.Errorf("%d of 60 seats are sold", len(got))
	}
	if s.journal.broken < 10 {
		t.Errorf("halls have failed %d times only", s.journal.broken)
	}
	s.check(got, "gala", "matinee")
}

func (s *service) hall(event string) interface{ Stop() <-chan struct{} } {
	s.shop.mu.Lock()
	defer s.shop.mu.Unlock()
	return s.shop.halls[event]
}

// The end comes while buyers buy and wait. Whatever the server has taken it answers.
func TestEverybodyIsAnsweredBeforeTheEnd(t *testing.T) {
	events := map[string][]string{"gala": seats("AB", 10), "solo": {"A1"}}
	s := start(t, events)
	s.journal.at[9] = s.end
	_, held, err := s.ask(t.Context(), "ann", "POST", "/events/solo/orders", `{"buyer": "ann", "seat": "A1"}`)
	if err != nil || held.Status != Held {
		t.Fatal(held, err)
	}
	var all sync.WaitGroup
	for i := range 30 { // they wait for ann, who does nothing
		all.Go(func() {
			id := fmt.Sprint("waits ", i)
			status, a, err := s.ask(t.Context(), id, "POST", "/events/solo/orders", `{"buyer": "bob", "seat": "A1"}`)
			if err != nil || status != http.StatusServiceUnavailable {
				t.Errorf("%s: %d, %+v, %v", id, status, a, err)
			}
		})
	}
	objecttest.Waiting(t, s.shop.halls["solo"], hold.Operation, 30)
	var mu sync.Mutex
	var got []Ticket
	for i := range 100 {
		b := &buyer{service: s, name: fmt.Sprintf("buyer %d ", i), fickle: i%4 == 0}
		all.Go(func() {
			ticket, err := b.buy("gala", events["gala"], i)
			if gone := (*url.Error)(nil); err != nil && !errors.As(err, &gone) { // the listener has
				t.Errorf("%s: %v", b.name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if ticket != nil {
				got = append(got, *ticket)
			}
		})
	}
	all.Wait()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	s.ended <- nil
	for request, answered := range s.taken {
		if !answered {
			t.Errorf("%s: taken, and not answered", request)
		}
	}
	if len(got) < 8 {
		t.Errorf("%d are sold", len(got))
	}
	s.check(got, "gala", "solo")
}

// Canceled means that it never ran: those who hang up while they wait hold no seat.
func TestWhoHangsUpHoldsNoSeat(t *testing.T) {
	s := start(t, map[string][]string{"solo": {"A1"}})
	const path = "/events/solo/orders"
	_, held, err := s.ask(t.Context(), "ann", "POST", path, `{"buyer": "ann", "seat": "A1"}`)
	if err != nil || held.Status != Held {
		t.Fatal(held, err)
	}
	ctx, hangUp := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range maxWaiting {
		all.Go(func() {
			if _, a, err := s.ask(ctx, fmt.Sprint("impatient ", i), "POST", path, `{"buyer": "bob", "seat": "A1"}`); err == nil {
				t.Errorf("%+v", a)
			}
		})
	}
	hall := s.shop.halls["solo"]
	objecttest.Waiting(t, hall, hold.Operation, maxWaiting)
	if status, a, err := s.ask(t.Context(), "too many", "POST", path, `{"buyer": "cid", "seat": "A1"}`); status != http.StatusServiceUnavailable {
		t.Errorf("%d, %+v, %v", status, a, err)
	}
	if text := s.get("/debug/waits"); strings.Count(text, `guard "not on hold" was false`) != maxWaiting {
		t.Error(text)
	}
	hangUp()
	all.Wait()
	objecttest.Idle(t, hall)
	if status, a, err := s.ask(t.Context(), "gives back", "DELETE", "/orders/"+held.Order, ""); a.Status != Canceled {
		t.Errorf("%d, %+v, %v", status, a, err)
	}
	if plan := s.get("/events/solo"); plan != `{"free":["A1"]}`+"\n" {
		t.Error(plan)
	}
}

func (s *service) get(path string) string {
	w, err := s.client.Get(s.url + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer w.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(w.Body); err != nil {
		s.t.Fatal(err)
	}
	return text.String()
}
