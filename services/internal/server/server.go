// Package server runs the process: it reads the configuration, opens the ports and starts the domains.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/spool"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/telemetry"
	"github.com/palisade/palisade/services/internal/traffic"
)

// Run serves domains until ctx ends, then drains and returns. An error says why the server could not start or had to
// stop. Logs go to stderr and, on the very first start, the first API token. A second SIGINT or SIGTERM during the
// drain ends the process at once.
func Run(ctx context.Context, cfg config.Config, stderr io.Writer, domains []Domain) error {
	s, err := Start(ctx, cfg, stderr, domains)
	if err != nil {
		return err
	}
	resting, wake := context.WithCancel(ctx)
	defer wake()
	go s.ReleaseMemoryWhenIdle(resting)
	defer context.AfterFunc(ctx, func() {
		// The caller still catches the signals that ended ctx. From now on they have their default effect.
		signal.Reset(os.Interrupt, syscall.SIGTERM)
		s.Stop()
	})()
	return s.Wait()
}

// Server is a running server.
type Server struct {
	config    config.Config
	log       *slog.Logger
	lines     *telemetry.LogBuffer // buffer of log
	listeners *listeners
	addresses Addresses
	grpc      *grpc.Server
	http      *http.Server
	metrics   *http.Server
	services  []string // names of the services on the gRPC port
	probes    *probes
	store     *store.Store
	jobs      *jobs.Jobs
	calls     traffic.Calls
	drain     context.CancelFunc // ends streams without an end of their own
	closers   []closer           // in opening order

	stop     chan struct{} // closed by Stop
	stopOnce sync.Once
	done     chan struct{} // closed when everything has ended
	err      error         // set before done is closed
}

// closer closes one part of the server. ctx is done when the grace period is over.
type closer struct {
	name  string
	close func(ctx context.Context) error
}

// Addresses are the addresses that the server listens on.
func (s *Server) Addresses() Addresses { return s.addresses }

// Stop starts the shutdown and returns at once; see Wait. It may be called more than once.
func (s *Server) Stop() { s.stopOnce.Do(func() { close(s.stop) }) }

// Wait returns when the server has ended: nil after a clean Stop, else the reason.
func (s *Server) Wait() error {
	<-s.done
	return s.err
}

func (s *Server) onClose(name string, fn func(ctx context.Context) error) {
	s.closers = append(s.closers, closer{name, fn})
}

// run serves all ports until Stop or until one of them fails. Log lines are buffered only during this time.
func (s *Server) run() {
	s.lines.StartBuffering()
	failed := make(chan error, 3)
	serve := func(key string, fn func() error) {
		go func() {
			if err := fn(); err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, grpc.ErrServerStopped) {
				failed <- fmt.Errorf("%s: %w", key, err)
			}
		}()
	}
	serve("metrics", func() error { return s.metrics.Serve(s.listeners.metrics) })
	serve("grpc", func() error { return s.grpc.Serve(s.listeners.grpc) })
	serve("http", func() error {
		if s.http.TLSConfig != nil {
			return s.http.ServeTLS(s.listeners.http, "", "")
		}
		return s.http.Serve(s.listeners.http)
	})
	go func() {
		var err error
		select {
		case <-s.stop:
		case err = <-failed:
			s.log.Error("a listener failed; stopping", "error", err)
		}
		_ = s.lines.StopBuffering() // a second signal leaves no time to flush
		s.err = errors.Join(err, s.shutdown())
		close(s.done)
	}()
}

const (
	// Load balancers get at most this part of the grace period to notice that the server is not ready.
	lameDuckPart = 4
	lameDuckMost = 5 * time.Second
	// On loopback addresses without a proxy, only watchers of the gRPC health service need to notice.
	lameDuckLocal = 200 * time.Millisecond
	// Closing idle ports takes a moment, too. Without this, a grace period of 0 would always end in an error.
	minGrace = 100 * time.Millisecond
)

// shutdown makes the node not ready and keeps serving while load balancers notice. In-flight requests and background
// jobs may end within the grace period; then they are cut off. Finally it closes everything else.
func (s *Server) shutdown() error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), max(s.config.ShutdownGrace, minGrace))
	defer cancel()
	s.probes.stopping()
	s.log.Info("stopping", "grace", s.config.ShutdownGrace.String())
	wait := time.NewTimer(s.lameDuck())
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
	s.drain()
	worked := make(chan error, 1)
	go func() { worked <- s.jobs.Stop(ctx) }()
	cut := s.drainPorts(ctx)
	errs := []error{cut, <-worked}
	if err := s.closeAll(ctx); err != nil {
		errs = append(errs, err)
	}
	s.log.Info("stopped", "took", time.Since(began).Round(time.Millisecond).String(), "cut_off", cut != nil)
	return errors.Join(errs...)
}

func (s *Server) lameDuck() time.Duration {
	most := lameDuckMost
	if !s.config.BehindProxy && !slices.ContainsFunc([]string{s.addresses.HTTP, s.addresses.GRPC}, config.IsReachable) {
		most = lameDuckLocal
	}
	return min(s.config.ShutdownGrace/lameDuckPart, most)
}

// drainPorts closes both API ports to new requests and waits for in-flight ones. Requests that are left when ctx is
// done are cut off, which is an error.
func (s *Server) drainPorts(ctx context.Context) error {
	var group sync.WaitGroup
	var httpErr error
	group.Go(func() {
		if httpErr = s.http.Shutdown(ctx); httpErr != nil {
			_ = s.http.Close() // cut off; Shutdown has returned the error
		}
	})
	var cut bool
	group.Go(func() {
		graceful := make(chan struct{})
		go func() {
			s.grpc.GracefulStop()
			close(graceful)
		}()
		select {
		case <-graceful:
		case <-ctx.Done():
			cut = true
			go s.grpc.Stop()
			select {
			case <-graceful:
			case <-time.After(closeTimeout): // a handler that ignores its context is abandoned
			}
		}
	})
	group.Wait()
	if cut || httpErr != nil {
		return fmt.Errorf("requests were still running after shutdown-grace (%s) and were cut off", s.config.ShutdownGrace)
	}
	return nil
}

// closeTimeout is the time for closing after requests have used up the grace period.
const closeTimeout = 5 * time.Second

// hangTime is how long a part may take to close before it is abandoned, so that the process ends. For that part this
// equals a crash, which every part tolerates.
const hangTime = 3 * closeTimeout

// closeAll closes what Start opened, the last first.
func (s *Server) closeAll(ctx context.Context) error {
	var errs []error
	for _, c := range slices.Backward(s.closers) {
		// What is written last is little, and may use the room for deletes on a full disk.
		ctx, cancel := context.WithTimeout(spool.WithRoom(context.WithoutCancel(ctx)), closeTimeout)
		if err := c.closeWithin(ctx, hangTime); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", c.name, err))
		}
		cancel()
	}
	return errors.Join(errs...)
}

// closeWithin returns when the part is closed, or fails after most.
func (c closer) closeWithin(ctx context.Context, most time.Duration) error {
	closed := make(chan error, 1)
	go func() { closed <- c.close(ctx) }()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case err := <-closed:
		return err
	case <-timer.C:
		return fmt.Errorf("it did not close within %s and is abandoned", most)
	}
}
