package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
)

// The bars beside what a user would pick instead.
const (
	peerListBar   = 20  // PocketBase's page over ours
	peerDeepBar   = 100 // PocketBase's page 5,000 over ours
	referenceBar  = 2.5 // our upload over the plain program's
	peerResults   = 5000
	peerFindings  = 1_000_000
	pocketVersion = "v0.36.8"
	// jumpedLists makes lists that no walk has.
	jumpedLists = 1_000_000
)

// peersOptions are what a comparison with peers is told.
type peersOptions struct {
	findings int
	rounds   int
	cpu      time.Duration
	version  string
}

func newPeersCommand() *cobra.Command {
	var o peersOptions
	command := &cobra.Command{
		Use:   "peers",
		Short: "Measure Palisade beside PocketBase and a plain program",
		Long: `Fills a store with findings, copies them into PocketBase and into a plain program (net/http, database/sql, encoding/json),
each with the same columns and indexes in SQLite, and asks all of them in turns:

  list page      100 findings filtered by status and severity, 16 connections: CPU of the server per request
  page 5,000     the same without the severity; of Palisade both as the next page of walks and as a first jump
  insert 5,000   a SARIF report of new findings, and the same again; PocketBase gets one batch of records
  memory         of each server afterwards

PocketBase is built from the module proxy in a temporary module; that takes a few minutes the first time. It needs Linux.
docs/peers.md says how to read the table. The exit status is 0, 1 when a bar was missed, or 2 when nothing can be said.`,
		Example: `  go run ./cmd/palisade-bench peers
  go run ./cmd/palisade-bench peers --findings 100000 --rounds 3`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.findings < minFindings || o.rounds < 1 || o.cpu <= 0 {
				return fmt.Errorf("--findings, --rounds, --cpu: got %d, %d, %s; want at least %d, 1, and a positive duration", o.findings, o.rounds, o.cpu, minFindings)
			}
			return runPeers(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := command.Flags()
	flags.IntVar(&o.findings, "findings", peerFindings, "findings in each store")
	flags.IntVar(&o.rounds, "rounds", 3, "rounds of everything; the table gives their median")
	flags.DurationVar(&o.cpu, "cpu", time.Second, "CPU time that a server spends in one round")
	flags.StringVar(&o.version, "pocketbase", pocketVersion, "version of github.com/pocketbase/pocketbase")
	return command
}

// peer is one of the programs that are compared.
type peer struct {
	name   string
	server *child
	client *client // of one connection
	many   *client
	meter  meter
	list   string // path of the page; empty: not measured
	deep   string // path of page 5,000, or of the last one; of Palisade only to see that it is the same page
	// body makes what is sent of a report; nil sends the report itself.
	body func(report []byte, round int, again bool) ([]byte, error)
	// insert sends a body; the same round again brings the same results.
	insert func(ctx context.Context, body []byte, round int) error

	page, deepPage      *target
	inserted, again     sample // milliseconds
	insertCPU, againCPU sample
	memory              sample // megabytes
	pageBytes           int
}

// peers is one comparison.
type peers struct {
	*bench
	o                       peersOptions
	deepNumber, lastNumber  int
	walks                   *walks
	jump                    *target // into a list that was never asked for
	palisade, pocket, plain *peer
	file, fileDeep          *peer   // the plain reader, which only lists: a process for each list
	all                     []*peer // that take uploads
}

// runPeers compares, and prints the table.
func runPeers(ctx context.Context, o peersOptions, stdout, stderr io.Writer) (err error) {
	b, err := newBench(ctx, options{findings: o.findings, rounds: o.rounds, cpu: o.cpu, results: peerResults}, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	p := &peers{bench: b, o: o}
	defer func() { err = errors.Join(err, p.stopAll()) }() // before the directory goes
	if err := p.prepare(ctx); err != nil {
		return err
	}
	if err := p.measureLists(ctx); err != nil {
		return err
	}
	if err := p.measureInserts(ctx); err != nil {
		return err
	}
	title := fmt.Sprintf("%d findings; SQLite; PocketBase %s; %s; %d rounds; %s; %s", o.findings, o.version, machine(), o.rounds,
		time.Now().UTC().Format(time.DateOnly), elapsed(b.began))
	ok, err := writeSections(stdout, title, []section{{"Side by side", p.rows()}})
	if err == nil && !ok {
		err = errMiss
	}
	return err
}

// prepare fills Palisade's store, and starts the others on copies of it.
func (p *peers) prepare(ctx context.Context) (err error) {
	dir := filepath.Join(p.dir, "peers")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	program, err := p.buildPocketBase(ctx, dir) // first: it is what may fail
	if err != nil {
		return err
	}
	if err := p.prepareOurs(ctx); err != nil {
		return err
	}
	if err := p.startReference(ctx, dir); err != nil {
		return err
	}
	if err := p.startPocketBase(ctx, program, filepath.Join(dir, "pocketbase-data")); err != nil {
		return err
	}
	p.all = []*peer{p.palisade, p.pocket, p.plain}
	return p.checkSame(ctx)
}

// prepareOurs fills the store, and starts what reads it.
func (p *peers) prepareOurs(ctx context.Context) (err error) {
	if err := p.fill(ctx, p.findings); err != nil {
		return err
	}
	if err := p.db.settle(ctx); err != nil {
		return err
	}
	if err := p.fillPlain(ctx); err != nil {
		return err
	}
	if p.lastNumber, err = p.lastPage(ctx); err != nil {
		return err
	}
	p.deepNumber = min(deepPage, p.lastNumber)
	if err := p.restart(ctx); err != nil { // the others have just started, too
		return err
	}
	p.usePalisade()
	return p.startPlainReader(ctx)
}

func (p *peers) stopAll() error {
	var errs []error
	for _, one := range []*peer{p.pocket, p.plain, p.file, p.fileDeep} {
		if one == nil || one.server == nil {
			continue
		}
		one.client.close()
		one.many.close()
		errs = append(errs, one.server.stop())
	}
	return errors.Join(errs...)
}

// newPeer is a program that serves.
func newPeer(name string, server *child, token string) *peer {
	return &peer{
		name: name, server: server, meter: server.pid(),
		client: newClient(server.ready.HTTP, token, 1), many: newClient(server.ready.HTTP, token, manyConnections),
	}
}

// measureLists asks for the list page and for the deep page, in turns.
func (p *peers) measureLists(ctx context.Context) error {
	var targets []*target
	for _, one := range append(p.all, p.file, p.fileDeep) {
		if one.list != "" {
			one.page = &target{what: one.name + ": list", server: one.meter, workers: manyConnections, do: one.many.get(one.list, "", 0)}
			targets = append(targets, one.page)
		}
		if one.deep != "" && one != p.palisade {
			what := fmt.Sprintf("%s: page %d", one.name, p.deepNumber)
			one.deepPage = &target{what: what, server: one.meter, workers: manyConnections, least: minRequests / 10, do: one.many.get(one.deep, "", 0)}
			targets = append(targets, one.deepPage)
		}
	}
	targets = append(targets, p.deepTargets()...)
	for _, t := range targets {
		p.progress("calibrate: %s", t.what)
		if err := t.calibrate(ctx, p.cpu); err != nil {
			return err
		}
	}
	if err := takeTurns(ctx, p.rounds, targets, p.progress); err != nil {
		return err
	}
	for _, one := range append(p.all, p.file) {
		resident, err := one.server.pid().memory("VmRSS")
		if err != nil {
			return err
		}
		one.memory = append(one.memory, resident/1e6)
	}
	return nil
}

// deepTargets are the two ways to a deep page of Palisade: the next one of a walk, and one that is asked for without
// those before it. The others have one way only.
func (p *peers) deepTargets() []*target {
	ours := p.palisade
	p.walks = newWalks(ours.many, p.deepNumber, p.lastNumber)
	ours.deepPage = &target{
		what: fmt.Sprintf("%s: page %d of a walk", ours.name, p.deepNumber), server: ours.meter, workers: manyConnections, least: minRequests / 10,
		before: p.walks.lay, do: p.walks.step,
	}
	var lists atomic.Int64
	p.jump = &target{
		what: fmt.Sprintf("%s: first jump to page %d", ours.name, p.deepNumber), server: ours.meter, workers: manyConnections, least: minRequests / 10,
		do: func(ctx context.Context) error {
			return p.walks.read(ctx, p.deepNumber, jumpedLists+int(lists.Add(1)))
		},
	}
	return []*target{ours.deepPage, p.jump}
}

// measureInserts stores the same results in each program, twice.
func (p *peers) measureInserts(ctx context.Context) error {
	if err := p.dropPlain(ctx); err != nil {
		return err
	}
	for n := range p.rounds {
		report, err := makeReport(uint64(1<<25+n), p.results)
		if err != nil {
			return err
		}
		for _, one := range p.all {
			p.progress("insert %d, round %d: %s", p.results, n+1, one.name)
			if err := one.insertTwice(ctx, report, n); err != nil {
				return fmt.Errorf("%s: %w", one.name, err)
			}
		}
	}
	return nil
}

func (o *peer) insertTwice(ctx context.Context, report []byte, round int) error {
	for _, into := range []struct {
		took, cpu *sample
		again     bool
	}{{&o.inserted, &o.insertCPU, false}, {&o.again, &o.againCPU, true}} {
		body := report
		if o.body != nil {
			var err error
			if body, err = o.body(report, round, into.again); err != nil {
				return err
			}
		}
		before, err := o.meter.cpu()
		if err != nil {
			return err
		}
		began := time.Now()
		if err := o.insert(ctx, body, round); err != nil {
			return err
		}
		*into.took = append(*into.took, micros(time.Since(began))/1000)
		after, err := o.meter.cpu()
		if err != nil {
			return err
		}
		*into.cpu = append(*into.cpu, micros(after-before)/1000)
	}
	return nil
}
