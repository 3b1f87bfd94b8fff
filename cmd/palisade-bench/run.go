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
}

// run measures everything and prints the table; it returns errMiss when a bar does not hold. The children write to
// stderr, too, at the same time.
func run(ctx context.Context, o options, stdout, stderr io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "palisade-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{options: o, stderr: stderr, began: time.Now(), dir: dir, token: "sgp_" + rand.Text() + rand.Text()}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.open(ctx); err != nil {
		return err
	}
	rows, err := b.measure(ctx)
	if err != nil {
		return err
	}
	kind := "SQLite"
	if b.db.postgres() {
		kind = "PostgreSQL (its own CPU is not counted)"
	}
	title := fmt.Sprintf("%d findings on %s; %s; %d rounds; %s", b.findings, kind, machine(), b.rounds, elapsed(b.began))
	ok, err := writeTable(stdout, title, rows)
	if err == nil && !ok {
		err = errMiss
	}
	return err
}

// open starts the server on an empty database.
func (b *bench) open(ctx context.Context) (err error) {
	data := filepath.Join(b.dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	if b.db, err = makeDatabase(ctx, data, b.database); err != nil {
		return err
	}
	b.settings = childSettings{Data: data, Database: b.db.url, Token: b.token}
	if b.server, err = start(ctx, rolePalisade, b.settings, b.stderr); err != nil {
		return err
	}
	b.client = newClient(b.server.ready.HTTP, b.token, 1)
	return b.db.open()
}

func (b *bench) close() error {
	var errs []error
	if b.client != nil {
		b.client.close()
	}
	if b.server != nil {
		errs = append(errs, b.server.stop())
	}
	if b.db != nil {
		errs = append(errs, b.db.close())
	}
	return errors.Join(errs...)
}

func (b *bench) measure(ctx context.Context) ([]row, error) {
	if err := b.fill(ctx); err != nil {
		return nil, err
	}
	rows, err := b.measurePages(ctx)
	if err != nil {
		return nil, err
	}
	deep, err := b.measureDeep(ctx)
	if err != nil {
		return nil, err
	}
	uploads, err := b.measureUploads(ctx)
	if err != nil {
		return nil, err
	}
	reports, err := b.measureReports(ctx)
	if err != nil {
		return nil, err
	}
	return append(append(append(rows, deep...), uploads.rows()...), reports...), nil
}

// progress tells what is being done; an error of stderr is not worth ending a measurement for.
func (b *bench) progress(format string, args ...any) {
	_, _ = fmt.Fprintf(b.stderr, "%7s  %s\n", elapsed(b.began), fmt.Sprintf(format, args...))
}
