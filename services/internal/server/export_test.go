package server

import (
	"context"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/store"
)

// Intervals that tests shorten, and values that they wait for.
var (
	ReportsCheckInterval = &reportsCheckInterval
	SessionInterval      = &sessionInterval
	WriteProbeInterval   = &writeProbeInterval
	WriteProbeAgain      = &writeProbeAgain
	WriteProbeTimeout    = writeProbeTimeout
)

// Store is the database of a running server.
func (s *Server) Store() *store.Store { return s.store }

// Config is its configuration.
func (s *Server) Config() config.Config { return s.config }

// ReleaseMemory releases memory at once.
func (s *Server) ReleaseMemory(ctx context.Context) { s.releaseMemory(ctx) }

// FlushLog writes the buffered log lines.
func (s *Server) FlushLog() error { return s.lines.Flush() }
