package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/gofrs/flock"
)

// Ticket is a seat for a buyer, in the name of an order: on hold, or sold.
type Ticket struct {
	Order string `json:"order"`
	Event string `json:"event"`
	Seat  string `json:"seat"`
	Buyer string `json:"buyer"`
}

// Journal keeps the tickets that have been sold, whatever becomes of the objects that
// sell them. Their factories read it.
type Journal interface {
	// Append returns when the ticket is safe. If it fails, the ticket is not sold.
	Append(Ticket) error
	// Sold returns the tickets of an event, in the order in which they were sold.
	Sold(event string) []Ticket
	// Has reports whether the ticket of an order has been sold.
	Has(order string) bool
}

// FileJournal is a Journal in a file that one process has at a time: a header, and a
// line for each ticket.
//
//	ticketshop journal 1
//	1f0c7a55 {"order":"…","event":"gala","seat":"A1","buyer":"ann"}
//
// The number is the checksum of all that comes before in the file, and of the ticket. So
// a line that has been changed, lost, or put in another place is found out. (An embedded
// store would have the lock, too, and survive a crash. But bbolt, say, has checksums for
// two of its pages only, and would sell the seat again of which a letter has changed.)
type FileJournal struct {
	mu      sync.Mutex
	file    *os.File
	lock    *flock.Flock
	size    int64
	lines   int
	sum     uint32 // of the file
	tickets []Ticket
	orders  map[string]bool
	broken  error // what is in the file is not known
}

const header = "ticketshop journal 1\n"

// ErrInUse is matched by the error of OpenJournal if another process has the journal.
var ErrInUse = errors.New("it is in use by another process")

// JournalError says that a file is no journal, or a damaged one. The file is as it was.
type JournalError struct {
	Path    string
	Line    int // from 1
	Problem string
}

// Error implements error.
func (e *JournalError) Error() string {
	return fmt.Sprintf("journal %s: line %d %s", e.Path, e.Line, e.Problem)
}

// OpenJournal reads a journal, or begins one in a file that is empty or not there. A last
// line that a crash has cut short was never answered for: it is cut off, which is logged.
// Everything else that is not as it was written is a *JournalError.
func OpenJournal(path string, log *slog.Logger) (_ *FileJournal, err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // or two names would be two locks
	}
	j := &FileJournal{lock: flock.New(path + ".lock"), orders: map[string]bool{}}
	switch locked, err := j.lock.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("journal %s: lock: %w", path, err)
	case !locked:
		return nil, fmt.Errorf("journal %s: %w", path, ErrInUse)
	}
	defer func() {
		if err != nil {
			j.Close()
		}
	}()
	if j.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(j.file)
	if err != nil {
		return nil, err
	}
	torn, err := j.read(path, text)
	if err != nil {
		return nil, err
	}
	if len(torn) > 0 {
		log.Warn("the last line of the journal was cut short, and is dropped", "journal", path, "line", j.lines+1, "text", string(torn))
		if err = j.file.Truncate(j.size); err != nil {
			return nil, err
		}
	}
	if j.lines == 0 {
		if err = j.write(header); err != nil {
			return nil, err
		}
		if dir, err := os.Open(filepath.Dir(path)); err == nil {
			dir.Sync() // it has the name of the file, and not every system can sync it
			dir.Close()
		}
	}
	return j, nil
}

// read reads the text of a journal, and returns what follows the last whole line.
func (j *FileJournal) read(path string, text []byte) (torn []byte, err error) {
	seats := map[[2]string]int{} // by event and name: the line
	for len(text) > 0 {
		n := bytes.IndexByte(text, '\n') + 1
		line, ticket, problem := text[:n], Ticket{}, ""
		switch {
		case j.lines == 0 && n == 0 && bytes.HasPrefix([]byte(header), text):
			return text, nil
		case j.lines == 0:
			if string(line) != header {
				problem = fmt.Sprintf("is not %q: this is no journal", header)
			}
		case n == 0:
			if _, changed := j.parse(append(text[:len(text)-1:len(text)-1], '\n')); changed == "" {
				problem = "ends with another byte than a newline"
				break
			}
			return text, nil
		default:
			ticket, problem = j.parse(line)
		}
		seat := [2]string{ticket.Event, ticket.Seat}
		if first := seats[seat]; problem == "" && first > 0 {
			problem = fmt.Sprintf("sells seat %s of %s, which line %d has sold", ticket.Seat, ticket.Event, first)
		}
		if problem != "" {
			return nil, &JournalError{Path: path, Line: j.lines + 1, Problem: problem}
		}
		j.note(line)
		if j.lines > 1 {
			j.keep(ticket)
			seats[seat] = j.lines
		}
		text = text[n:]
	}
	return nil, nil
}

// parse returns the ticket of a line, or what is wrong with it.
func (j *FileJournal) parse(line []byte) (t Ticket, problem string) {
	sum, text, _ := bytes.Cut(line, []byte{' '})
	switch err := json.Unmarshal(text, &t); {
	case string(sum) != j.checksum(text):
		return t, "does not match its checksum: it, or one before it, has been changed"
	case err != nil:
		return t, "holds no ticket: " + err.Error()
	}
	return t, ""
}

// checksum returns that of a ticket's text in the next line, newline included.
func (j *FileJournal) checksum(text []byte) string {
	return fmt.Sprintf("%08x", crc32.Update(j.sum, crc32.IEEETable, text))
}

// write makes sure that the line is in the file.
func (j *FileJournal) write(line string) error {
	_, err := j.file.WriteString(line)
	if err == nil {
		err = j.file.Sync()
	}
	if err == nil {
		j.note([]byte(line))
	}
	return err
}

// note says that the line is in the file.
func (j *FileJournal) note(line []byte) {
	j.lines++
	j.size += int64(len(line))
	j.sum = crc32.Update(j.sum, crc32.IEEETable, line)
}

func (j *FileJournal) keep(t Ticket) {
	j.tickets = append(j.tickets, t)
	j.orders[t.Order] = true
}

// Append implements Journal.
func (j *FileJournal) Append(t Ticket) error {
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken != nil {
		return j.broken
	}
	if err := j.write(j.checksum(text) + " " + string(text)); err != nil {
		j.broken = fmt.Errorf("journal: %w", err)
		j.file.Truncate(j.size)
		return j.broken
	}
	j.keep(t)
	return nil
}

// Sold implements Journal.
func (j *FileJournal) Sold(event string) (sold []Ticket) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, t := range j.tickets {
		if t.Event == event {
			sold = append(sold, t)
		}
	}
	return sold
}

// Has implements Journal.
func (j *FileJournal) Has(order string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.orders[order]
}

// Close closes the file, and lets another process have it.
func (j *FileJournal) Close() error {
	var err error
	if j.file != nil {
		err = j.file.Close()
	}
	return errors.Join(err, j.lock.Close())
}
