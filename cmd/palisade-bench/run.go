package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// bench is one run.
type bench struct {
	options
	stderr   io.Writer
	began    time.Time
	dir      string
	token    string
	db       *database
	settings childSettings
	server   *child
	client   *client

	uploads int             // number of uploads that filled the store
	stored  int             // number of findings in the store, from any part
	decided map[int64]int64 // by project, the highest id that was handed out for triage
	weight  weight
	plain   bool // the side table of the plain reader exists
}

// run measures everything and prints the tables; it returns errMiss if a limit is exceeded. The children write to
// stderr concurrently.
func run(ctx context.Context, o options, stdout, stderr io.Writer) (err error) {
	b, err := newBench(ctx, o, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	sections, err := b.measure(ctx)
	if err != nil && len(sections) == 0 {
		return err
	}
	title := fmt.Sprintf("%d findings on %s; %s; %d rounds; %s", b.findings, b.db.kind(), machine(), b.rounds, elapsed(b.began))
	ok, written := writeSections(stdout, title, sections)
	if err = errors.Join(err, written); err == nil && !ok {
		err = errMiss
	}
	return err
}

// newBench starts the server on an empty database in a temporary directory.
func newBench(ctx context.Context, o options, stderr io.Writer) (_ *bench, err error) {
	dir, err := os.MkdirTemp("", "palisade-bench-")
	if err != nil {
		return nil, err
	}
	b := &bench{options: o, stderr: stderr, began: time.Now(), dir: dir, token: "sgp_" + rand.Text() + rand.Text(), decided: map[int64]int64{}}
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return nil, errors.Join(err, b.close())
	}
	if err := b.open(ctx, data); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// open makes the database, in the given directory if it is SQLite, and starts the server.
func (b *bench) open(ctx context.Context, data string) (err error) {
	if b.db, err = makeDatabase(ctx, data, b.database); err != nil {
		return err
	}
	b.settings = childSettings{Data: data, Database: b.db.url, Token: b.token}
	if err := b.start(ctx); err != nil {
		return err
	}
	return b.db.open()
}

func (b *bench) start(ctx context.Context) (err error) {
	if b.server, err = start(ctx, rolePalisade, b.settings, b.stderr); err != nil {
		return err
	}
	b.client = newClient(b.server.ready.HTTP, b.token, 1)
	return nil
}

// stop ends the server.
func (b *bench) stop() error {
	if b.server == nil {
		return nil
	}
	b.client.close()
	server := b.server
	b.server = nil
	return server.stop()
}

// restart starts the server again, with empty caches.
func (b *bench) restart(ctx context.Context) error {
	if err := b.stop(); err != nil {
		return err
	}
	return b.start(ctx)
}

func (b *bench) close() error {
	return errors.Join(b.stop(), b.closeDatabase(), os.RemoveAll(b.dir))
}

func (b *bench) closeDatabase() error {
	if b.db == nil {
		return nil
	}
	return b.db.close()
}

// progress prints the current step; an error of stderr does not end the measurement.
func (b *bench) progress(format string, args ...any) {
	_, _ = fmt.Fprintf(b.stderr, "%7s  %s\n", elapsed(b.began), fmt.Sprintf(format, args...))
}

// elapsed formats a duration.
func elapsed(since time.Time) string { return time.Since(since).Round(100 * time.Millisecond).String() }
