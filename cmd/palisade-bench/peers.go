package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// Limits relative to the peer.
const (
	peerListBar   = 20  // PocketBase's page over ours
	peerDeepBar   = 100 // PocketBase's page 5,000 over ours
	pocketVersion = "v0.36.8"
)

func newPeersCommand() *cobra.Command {
	o := options{cpu: time.Second}
	command := &cobra.Command{
		Use:   "peers",
		Short: "Compare Palisade with PocketBase",
		Long: `Fills a store with findings, copies them into PocketBase, with the same columns and indexes, and asks both in turns.
PocketBase is built from the module proxy; that takes a few minutes. It needs Linux. docs/peers.md says how to read the table.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.findings < minFindings || o.rounds < 1 {
				return fmt.Errorf("--findings, --rounds: got %d, %d; want at least %d and 1", o.findings, o.rounds, minFindings)
			}
			return runPeers(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	command.Flags().IntVar(&o.findings, "findings", 1_000_000, "findings in each store")
	command.Flags().IntVar(&o.rounds, "rounds", 3, "rounds of everything; the table gives their median")
	return command
}

// peer is a compared program.
type peer struct {
	name           string
	process        process
	client, many   *client
	list           string                // path of the page
	deep           func(page int) string // path of a page after skipping the given number
	listed, walked *target
	memory         sample // megabytes
}

func newPeer(name string, process process, address, token string) *peer {
	return &peer{name: name, process: process, client: newClient(address, token, 1), many: newClient(address, token, manyConnections)}
}

// runPeers compares, and prints the table.
func runPeers(ctx context.Context, o options, stdout, stderr io.Writer) (err error) {
	b, err := newBench(ctx, o, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	program, err := b.buildPocketBase(ctx) // first, because it may fail
	if err != nil {
		return err
	}
	ours, err := b.oursAmongPeers(ctx)
	if err != nil {
		return err
	}
	pocket, stop, err := b.servePocketBase(ctx, program)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }() // before the directory is removed
	rows, err := b.comparePeers(ctx, ours, pocket)
	if err != nil {
		return err
	}
	title := fmt.Sprintf("%d findings; SQLite; PocketBase %s; %s; %d rounds; %s", o.findings, pocketVersion, machine(), o.rounds, elapsed(b.began))
	ok, err := writeSections(stdout, title, []section{{"Side by side", rows}})
	if err == nil && !ok {
		err = errMiss
	}
	return err
}

// oursAmongPeers fills the store and restarts the server, because the peer has just started, too.
func (b *bench) oursAmongPeers(ctx context.Context) (*peer, error) {
	// The plain reader's table has the findings as JSON, which is copied.
	for _, step := range []func(context.Context) error{func(ctx context.Context) error { return b.fill(ctx, b.findings) }, b.fillPlain, b.restart} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	ours := newPeer("Palisade", b.server.pid(), b.server.ready.HTTP, b.token)
	ours.list = b.client.findingsPath(measuredQuery)
	ours.deep = func(page int) string { return b.client.findingsPath(pageQuery{Status: "open", Page: page}) }
	return ours, nil
}

// comparePeers requests the list page and deep pages in turns.
func (b *bench) comparePeers(ctx context.Context, ours, other *peer) ([]row, error) {
	last, err := b.lastPage(ctx)
	if err != nil {
		return nil, err
	}
	deep := min(deepPage, last)
	if err := samePages(ctx, ours, other, deep); err != nil {
		return nil, err
	}
	both := []*peer{ours, other}
	var targets []*target
	for _, one := range both {
		one.listed = &target{what: one.name + ": list", server: one.process, workers: manyConnections, do: one.many.get(one.list, "", 0)}
		one.walked = one.walk(deep, last)
		targets = append(targets, one.listed, one.walked)
	}
	for _, t := range targets {
		if err := t.calibrate(ctx, b.cpu); err != nil {
			return nil, err
		}
	}
	if err := takeTurns(ctx, b.rounds, targets, b.progress); err != nil {
		return nil, err
	}
	for _, one := range both {
		resident, err := one.process.memory("VmRSS")
		if err != nil {
			return nil, err
		}
		one.memory = sample{resident / 1e6}
	}
	return peerRows(ours, other), nil
}

// walk reads page after page from the deep one on, like one client; after the last page it starts again.
func (o *peer) walk(deep, last int) *target {
	next := deep
	return &target{what: o.name + ": deep pages", server: o.process, workers: 1, least: minRequests / 10, do: func(ctx context.Context) error {
		page := next
		next = deep + (next-deep+1)%(last-deep+1)
		return o.client.get(o.deep(page), "", 0)(ctx)
	}}
}

// peerRows compare the cost of both programs.
func peerRows(ours, other *peer) []row {
	var rows []row
	both := func(what string, value func(*peer) sample, unit func(float64) string, least float64) {
		rows = append(rows, row{what: ours.name + ": " + what, value: value(ours), unit: unit},
			row{what: other.name + ": " + what, value: value(other), unit: unit, ratio: value(other).over(value(ours)), base: ours.name, bar: atLeast(least)})
	}
	both("list", func(o *peer) sample { return o.listed.cpu }, cpuMicros, peerListBar)
	both("page "+strconv.Itoa(deepPage), func(o *peer) sample { return o.walked.cpu }, cpuMicros, peerDeepBar)
	both("memory (RSS)", func(o *peer) sample { return o.memory }, megabytes, 1)
	return rows
}

// samePages checks that both programs list the same findings.
func samePages(ctx context.Context, ours, other *peer, deep int) error {
	for _, paths := range [][2]string{{ours.list, other.list}, {ours.deep(deep), other.deep(deep)}} {
		want, ourErr := ours.client.ids(ctx, paths[0])
		got, otherErr := other.client.ids(ctx, paths[1])
		if err := errors.Join(ourErr, otherErr); err != nil {
			return err
		}
		if len(want) != pageSize || !slices.Equal(got, want) {
			return fmt.Errorf("%s lists %d findings at %s, which are not ours", other.name, len(got), paths[1])
		}
	}
	return nil
}

// ids returns the ids on a page; PocketBase's ids are text with leading zeros.
func (c *client) ids(ctx context.Context, path string) (ids []string, err error) {
	type listed struct{ ID json.RawMessage }
	var page struct{ Findings, Items []listed }
	err = c.call(ctx, http.MethodGet, path, nil, &page)
	for _, one := range append(page.Findings, page.Items...) {
		ids = append(ids, strings.TrimLeft(strings.Trim(string(one.ID), `"`), "0"))
	}
	return ids, err
}
