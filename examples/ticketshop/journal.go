package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
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

// FileJournal is a Journal in a file, one ticket a line.
type FileJournal struct {
	mu      sync.Mutex
	file    *os.File
	size    int64
	tickets []Ticket
	orders  map[string]bool
	broken  error // nobody knows what is in the file
}

// OpenJournal reads a journal, or begins one.
func OpenJournal(path string) (*FileJournal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	j := &FileJournal{file: file, orders: map[string]bool{}}
	text, err := io.ReadAll(file)
	text = text[:bytes.LastIndexByte(text, '\n')+1] // a line that a crash has cut short was never answered for
	for line := range bytes.Lines(text) {
		var t Ticket
		err = errors.Join(err, json.Unmarshal(line, &t))
		j.note(t, len(line))
	}
	if err == nil {
		err = file.Truncate(j.size)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("journal %s: %w", path, err)
	}
	return j, nil
}

func (j *FileJournal) note(t Ticket, size int) {
	j.tickets = append(j.tickets, t)
	j.orders[t.Order] = true
	j.size += int64(size)
}

// Append implements Journal.
func (j *FileJournal) Append(t Ticket) error {
	line, err := json.Marshal(t)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken != nil {
		return j.broken
	}
	_, err = j.file.Write(append(line, '\n'))
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		j.broken = fmt.Errorf("journal: %w", err)
		j.file.Truncate(j.size)
		return j.broken
	}
	j.note(t, len(line)+1)
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

// Close closes the file.
func (j *FileJournal) Close() error { return j.file.Close() }
