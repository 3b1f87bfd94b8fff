package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
)

const (
	// neighboursFindings is the number of findings in each of the two deployments before the measurement, at most half
	// of --findings.
	neighboursFindings = 5000
	// neighboursRounds is small, because a round takes long: it measures the neighbour alone for neighboursIdle
	// and under load for neighboursBusy, both multiplied by --cpu.
	neighboursRounds               = 3
	neighboursIdle, neighboursBusy = 6, 12
	// loadLead is how long a load runs before the measurement, multiplied by --cpu. Its queue is full by then.
	loadLead = 5
)

// Limits of fairness: the latency of a request under the load of a hostile tenant, relative to an idle server, and the
// maximum time of a job.
const (
	fairRequests = 2
	fairJobs     = 2000 // milliseconds
)

// fairness is a server with two deployments: one floods a queue, the other one is measured.
type fairness struct {
	*bench
	server    *child
	hosts     *hosts
	hostile   account
	neighbour account
	data      string
}

// account is a tenant and the id of its deployment, which some paths need.
type account struct {
	tenant
	id int64
}

// measureNeighbours floods one queue after the other in one deployment, and measures another one.
func (b *bench) measureNeighbours(ctx context.Context) (rows []row, err error) {
	for _, l := range theLoads() {
		beside := &comparison{}
		for n := range min(b.rounds, neighboursRounds) {
			b.progress("neighbour during %s, round %d", l.what, n+1)
			if err := b.fairnessRound(ctx, l, beside); err != nil {
				return nil, fmt.Errorf("%s: %w", l.what, err)
			}
		}
		rows = append(rows, beside.rows(l.what)...)
	}
	return rows, nil
}

// fairnessRound measures the neighbour alone and then under load. Each round uses a new server, so that the queues have
// no jobs of the previous one.
func (b *bench) fairnessRound(ctx context.Context, l load, into *comparison) (err error) {
	f, err := b.startFairness(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	if err := f.fill(ctx); err != nil {
		return err
	}
	idle, err := f.probe(ctx, neighboursIdle*b.cpu)
	if err != nil {
		return err
	}
	busy, err := f.beside(ctx, l)
	if err != nil {
		return err
	}
	into.add(idle, busy)
	return nil
}

// startFairness starts the server, with receivers and a model on this machine.
func (b *bench) startFairness(ctx context.Context) (_ *fairness, err error) {
	f := &fairness{bench: b, data: filepath.Join(b.dir, "neighbours")}
	if f.hosts, err = startHosts(ctx); err != nil {
		return nil, err
	}
	if err := os.Mkdir(f.data, 0o700); err != nil {
		return nil, errors.Join(err, f.hosts.close())
	}
	own, err := makeDatabase(ctx, f.data, b.database)
	if err != nil {
		return nil, errors.Join(err, f.hosts.close())
	}
	f.hosts.drop = own.drop
	settings := childSettings{Data: f.data, Database: own.url, Token: b.token, Egress: "127.0.0.1", Model: f.hosts.base + "/v1", Limited: true}
	if f.server, err = start(ctx, rolePalisade, settings, b.stderr); err != nil {
		return nil, errors.Join(err, f.hosts.close())
	}
	cfg := config.Default()
	cfg.Data, cfg.Database = f.data, own.url
	if err := f.open(ctx, cfg); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// open looks up the first deployment and creates the second one.
func (f *fairness) open(ctx context.Context, cfg config.Config) error {
	person, err := services.MintJWT(ctx, cfg, administrator, time.Hour)
	if err != nil {
		return err
	}
	f.hostile = account{tenant: f.own(), id: 1}
	if f.neighbour.id, f.neighbour.deployment, err = createDeployment(ctx, f.server, person, "Neighbour"); err != nil {
		return err
	}
	_, f.neighbour.token, err = services.CreateToken(ctx, cfg, services.CreateTokenRequest{
		Name: "bench", Scopes: []string{"web-api", "agent"}, Role: "admin", Deployment: f.neighbour.deployment,
	})
	return err
}

// fill fills both deployments and gives the neighbour a receiver and a workflow.
func (f *fairness) fill(ctx context.Context) error {
	for _, who := range []account{f.hostile, f.neighbour} {
		c := who.client(f.server, 1)
		defer c.close()
		err := makeUploads(ctx, 0, min(neighboursFindings, f.findings/2)/fillResults, fillResults, func(ctx context.Context, u fillUpload) error {
			return c.create(ctx, u.project, u.ref, u.category, u.report, fillResults)
		})
		if err != nil {
			return err
		}
		if err := f.publish(ctx, who); err != nil {
			return err
		}
	}
	return f.rule(ctx, f.neighbour, "neighbour", pathNeighbour)
}

// beside measures the neighbour under load.
func (f *fairness) beside(ctx context.Context, l load) (*probes, error) {
	loading, done := context.WithCancel(ctx)
	defer done()
	ended := make(chan error, 1)
	go func() { ended <- l.run(f, loading) }()
	select {
	case err := <-ended:
		return nil, errors.Join(errors.New("the load ended before it was to"), err)
	case <-time.After(loadLead * f.cpu):
	}
	busy, err := f.probe(ctx, neighboursBusy*f.cpu)
	done()
	if failed := <-ended; failed != nil && !errors.Is(failed, context.Canceled) {
		err = errors.Join(err, failed)
	}
	return busy, err
}

func (f *fairness) close() error {
	f.hosts.release() // otherwise a message that waits for an answer keeps the server from stopping
	return errors.Join(f.server.stop(), f.hosts.close(), os.RemoveAll(f.data))
}
