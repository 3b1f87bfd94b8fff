package access

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
)

const testURL = "https://palisade.example"

// onEachStore runs a test on an empty store of each kind.
func onEachStore(t *testing.T, test func(t *testing.T, st *store.Store)) {
	storetest.Each(t, func(t *testing.T, o store.Options) { test(t, storetest.Open(t, o)) })
}

func openSQLite(t testing.TB) *store.Store {
	return storetest.Open(t, store.Options{DataDir: storetest.SQLite(t)})
}

// clock is a time that only the test advances, so that no interval passes by itself on a slow machine.
type clock struct {
	begin  sync.Once
	start  time.Time
	offset atomic.Int64
}

func (c *clock) now() time.Time {
	c.begin.Do(func() { c.start = time.Now() })
	return c.start.Add(time.Duration(c.offset.Load()))
}

func (c *clock) advance(d time.Duration) { c.offset.Add(int64(d)) }

// server has what one node needs to authenticate.
type server struct {
	*Authenticator
	st     *store.Store
	clock  *clock
	first  *FirstStart
	issuer *Issuer
	tokens *Tokens
}

// newServer makes the first start on an empty store.
func newServer(t testing.TB, st *store.Store) *server {
	t.Helper()
	first, err := Bootstrap(t.Context(), st, BootstrapOptions{Slug: "acme", Name: "Acme"})
	if err != nil || first == nil {
		t.Fatalf("bootstrap: %v, %v", first, err)
	}
	key, err := secret.Open(filepath.Join(t.TempDir(), "palisade.key"), true)
	if err != nil {
		t.Fatal(err)
	}
	s := newNode(t, st, key, &clock{})
	s.first = first
	if err := s.issuer.EnsureKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// newNode adds a node to a store.
func newNode(t testing.TB, st *store.Store, key *secret.Keyring, c *clock) *server {
	t.Helper()
	s := &server{st: st, clock: c, issuer: NewIssuer(st, key, testURL), tokens: NewTokens(st)}
	s.issuer.now, s.tokens.now = c.now, c.now
	s.Authenticator = NewAuthenticator(st, s.issuer, nil, nil, slog.New(slog.DiscardHandler))
	s.Authenticator.now = c.now
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *server) login(t testing.TB, credential string) (*Principal, error) {
	t.Helper()
	return s.Authenticate(t.Context(), "Bearer "+credential)
}

func (s *server) mustLogin(t testing.TB, credential string) *Principal {
	t.Helper()
	p, err := s.login(t, credential)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (s *server) mint(t testing.TB, ttl time.Duration) string {
	t.Helper()
	raw, err := s.issuer.Mint(t.Context(), AdminEmail, ttl)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// write changes the store as the server itself.
func write(t testing.TB, st *store.Store, change func(ctx context.Context, tx *ent.Tx) error) {
	t.Helper()
	if err := st.Write(tenant.System(t.Context()), change); err != nil {
		t.Fatal(err)
	}
}

func assertReason(t testing.TB, err error, want errorsv1.Reason) {
	t.Helper()
	if !apierr.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

// assertBadCredential checks for the error of all bad credentials.
func assertBadCredential(t testing.TB, p *Principal, err error) {
	t.Helper()
	want, got := status.Convert(errBadCredential("")), status.Convert(err)
	if p != nil || got.Code() != want.Code() || got.Message() != want.Message() {
		t.Errorf("got %+v, %v", p, err)
	}
}

// statusText is the text for the caller.
func statusText(err error) string { return status.Convert(err).Message() }
