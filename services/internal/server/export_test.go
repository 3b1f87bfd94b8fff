package server

import (
	"context"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/store"
)

// What tests shorten, and what they wait for.
var (
	ReportsCheckInterval = &reportsCheckInterval
	SessionInterval      = &sessionInterval
	WriteProbeInterval   = &writeProbeInterval
	WriteProbeAgain      = &writeProbeAgain
	WriteProbeTimeout    = writeProbeTimeout
)

// Store is the database of a server that runs.
func (s *Server) Store() *store.Store { return s.store }

// Config is what it runs with.
func (s *Server) Config() config.Config { return s.config }

// GiveBack gives back memory at once.
func (s *Server) GiveBack(ctx context.Context) { s.giveBack(ctx) }

// FlushLog writes the lines of the log that wait.
func (s *Server) FlushLog() error { return s.lines.Flush() }
