package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	identityv1 "github.com/palisade/palisade/gen/palisade/identity/v1"
)

const (
	// hostileMemory is Go's memory limit for a process with hostileBar MiB in total; hostileSpace is where the kernel
	// kills the process.
	hostileMemory = "GOMEMLIMIT=400MiB"
	hostileSpace  = 6 << 30
	// hostileBar limits the memory of an attacked server in total, in MiB like the limit of a container, as
	// docs/limits.md promises it. What is above Go's limit is for the program itself, for SQLite, and for what Go
	// allocates before it collects garbage.
	hostileBar = 512
	// healthBar limits the response time of the health check, in milliseconds.
	healthBar = 1000
	// hostileAtOnce is the number of concurrent requests, hostileBurst of the first attack.
	hostileAtOnce, hostileBurst = 16, 250
	// hostileRounds is the number of attacked servers; the median counts.
	hostileRounds = 3
)

// measureHostile sends messages that are much more expensive to decode than to send to every RPC of a fresh server:
// without a token over gRPC, and with a reader's token over both ports. To other servers it sends calls that it resets
// at once.
func (b *bench) measureHostile(ctx context.Context) ([]row, error) {
	figures, resets := &hostileFigures{}, &resetFigures{}
	for n := range hostileRounds {
		b.progress("hostile, round %d of %d", n+1, hostileRounds)
		if err := b.hostileRound(ctx, figures); err != nil {
			return nil, err
		}
		if err := b.resetRound(ctx, resets); err != nil {
			return nil, err
		}
	}
	return append(figures.rows(), resets.rows()...), nil
}

// hostileFigures collects the figures of all rounds.
type hostileFigures struct {
	requests, refused, megabytes, slowest, failures sample
	broken                                          []string
}

// hostileRound attacks one server.
func (b *bench) hostileRound(ctx context.Context, figures *hostileFigures) error {
	return b.attacked(ctx, childSettings{}, &figures.megabytes, &figures.slowest, func(server *child) error {
		a, err := newAttack(ctx, server, b.token)
		if err != nil {
			return err
		}
		defer a.close()
		if err := a.run(ctx); err != nil {
			return err
		}
		a.add(figures)
		return nil
	})
}

// attacked starts a server, runs an attack, and adds the highest memory of the server and its slowest answer of
// /healthz meanwhile.
func (b *bench) attacked(
	ctx context.Context, settings childSettings, megabytes, slowest *sample, attack func(*child) error,
) (err error) {
	data := filepath.Join(b.dir, "hostile")
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	settings.Data, settings.Token, settings.AddressSpace = data, b.token, hostileSpace
	server, err := start(ctx, rolePalisade, settings, b.stderr, hostileMemory)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.stop(), os.RemoveAll(data)) }()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var longest time.Duration
	var unwell error
	var group sync.WaitGroup
	group.Go(func() { longest, unwell = watch(watching, "http://"+server.ready.HTTP) })
	err = attack(server)
	stop()
	group.Wait()
	if err = errors.Join(err, unwell); err != nil {
		return err
	}
	peak, err := server.pid().memory("VmHWM")
	if err != nil {
		return err
	}
	*megabytes = append(*megabytes, peak/(1<<20))
	*slowest = append(*slowest, float64(longest.Milliseconds()))
	return nil
}

// attack is one run against one server.
type attack struct {
	conn       *grpc.ClientConn
	http       *http.Client
	base       string
	reader     string // token
	operations []operation

	mu      sync.Mutex
	answers map[string]int
	broken  []string // responses that report a failure of the server
}

func newAttack(ctx context.Context, server *child, admin string) (*attack, error) {
	conn, err := grpc.NewClient(server.ready.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	response, err := identityv1.NewTokensServiceClient(conn).CreateToken(
		metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+admin),
		&identityv1.CreateTokenRequest{DeploymentId: 1, Name: "reader", Role: "ORG_ROLE_READONLY", Scopes: []string{"web-api"}})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &attack{
		conn: conn, http: &http.Client{Timeout: time.Minute}, base: "http://" + server.ready.HTTP, reader: response.GetValue(),
		operations: allOperations(), answers: map[string]int{},
	}, nil
}

func (a *attack) close() {
	_ = a.conn.Close()
	a.http.CloseIdleConnections()
}

// run sends all attacks.
func (a *attack) run(ctx context.Context) error {
	packed, err := newCompressed(unknownFields(bombBytes))
	if err != nil {
		return err
	}
	encoding.RegisterCompressor(packed) // before the first call that uses it
	bomb := []byte{0}
	public := healthv1.Health_Check_FullMethodName
	burst, inner := errgroup.WithContext(ctx)
	for range hostileBurst {
		burst.Go(func() error { return a.grpc(inner, "", public, bomb, true) })
	}
	if err := burst.Wait(); err != nil {
		return err
	}
	work, inner := errgroup.WithContext(ctx)
	work.SetLimit(hostileAtOnce)
	for _, t := range a.operations {
		work.Go(func() error { return a.grpc(inner, "", t.method, bomb, true) })
		work.Go(func() error { return a.grpc(inner, a.reader, t.method, bomb, true) })
		for _, list := range t.lists {
			work.Go(func() error { return a.grpc(inner, a.reader, t.method, list.wire(), false) })
			if t.path != "" {
				work.Go(func() error { return a.post(inner, t, list.json()) })
			}
		}
		if t.path != "" {
			work.Go(func() error {
				return a.post(inner, t, []byte(`{"unknown":[`+strings.Repeat("{},", listBytes/3)+`{}]}`))
			})
		}
	}
	return work.Wait()
}

// grpc makes one call. Only an unreachable server is an error.
func (a *attack) grpc(ctx context.Context, token, method string, message []byte, compressed bool) error {
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	options := []grpc.CallOption{grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallSendMsgSize(64 << 20)}
	if compressed {
		options = append(options, grpc.UseCompressor("gzip"))
	}
	stream, err := a.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method, options...)
	if err == nil {
		_ = stream.SendMsg(&message) // the response says more
		_ = stream.CloseSend()
		var answer []byte
		err = stream.RecvMsg(&answer)
	}
	code := status.Code(err)
	a.count("gRPC "+code.String(), code == codes.Internal || code == codes.Unknown && err.Error() != "EOF", method, err)
	return ctx.Err()
}

func (a *attack) post(ctx context.Context, t operation, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, t.verb, a.base+t.path, strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+a.reader)
	response, err := a.http.Do(request)
	if err != nil {
		// A server that answers before it has read the body closes the connection, which may hide the response.
		a.count("HTTP closed", false, t.method, err)
		return ctx.Err()
	}
	_ = response.Body.Close()
	a.count(fmt.Sprint("HTTP ", response.StatusCode), response.StatusCode == http.StatusInternalServerError, t.method, nil)
	return ctx.Err()
}

func (a *attack) count(answer string, broken bool, method string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers[answer]++
	if broken && len(a.broken) < 5 {
		a.broken = append(a.broken, fmt.Sprintf("%s: %s: %v", method, answer, err))
	}
}

// watch polls the health of a server until ctx ends, on a connection of its own. It returns the slowest response time.
func watch(ctx context.Context, base string) (slowest time.Duration, err error) {
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for ctx.Err() == nil {
		began := time.Now()
		response, err := client.Get(base + "/healthz")
		if err != nil {
			return 0, fmt.Errorf("health: %w", err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return 0, fmt.Errorf("health: %s", response.Status)
		}
		slowest = max(slowest, time.Since(began))
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return slowest, nil
}

// add adds the results of the attack.
func (a *attack) add(figures *hostileFigures) {
	a.mu.Lock()
	defer a.mu.Unlock()
	total, refused := 0, 0
	for answer, n := range a.answers {
		total += n
		if answer != "gRPC OK" && answer != "HTTP 200" {
			refused += n
		}
	}
	figures.requests = append(figures.requests, float64(total))
	figures.refused = append(figures.refused, float64(refused))
	figures.failures = append(figures.failures, float64(len(a.broken)))
	figures.broken = append(figures.broken, a.broken...)
}

func plainUnit(name string) func(float64) string {
	return func(value float64) string { return plainNumber(value) + " " + name }
}

func (f *hostileFigures) rows() []row {
	return []row{
		{what: "hostile requests", value: f.requests, unit: plainNumber},
		{what: "of them refused", value: f.refused, unit: plainNumber},
		{what: "memory in total, at its highest", value: f.megabytes, unit: plainUnit("MiB"), bar: within(hostileBar, "MiB")},
		{what: "slowest answer of /healthz", value: f.slowest, unit: plainUnit("ms"), bar: within(healthBar, "ms")},
		{what: "failures of the server", value: f.failures, unit: plainNumber, note: strings.Join(f.broken, "; "), bar: always(0, " ")},
	}
}
