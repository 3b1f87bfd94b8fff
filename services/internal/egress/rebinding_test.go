package egress

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// TestRebinding: a name resolves to an allowed address at first and to an internal one for the call. The connection is
// not made.
func TestRebinding(t *testing.T) {
	inner := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the inner server was reached") })
	var lookups atomic.Int32
	resolver := nameServer(t, func() []string {
		if lookups.Add(1) == 1 {
			return []string{"93.184.215.14"}
		}
		return []string{"127.0.0.1"}
	})
	g, err := New(Config{Log: slog.New(slog.DiscardHandler), resolver: resolver})
	if err != nil {
		t.Fatal(err)
	}
	// A check before the call would see this address:
	addresses, err := resolver.LookupNetIP(t.Context(), "ip4", "rebind.test")
	if err != nil || len(addresses) != 1 || refusalOf(addresses[0]) != "" {
		t.Fatalf("the first answer is to be public: %v, %v", addresses, err)
	}
	url := "https://rebind.test:" + port(inner.Listener)
	if err := g.CheckURL(url); err != nil {
		t.Fatal(err)
	}
	if _, _, err := get(t, g.Client(Limits{}), url); !errors.Is(err, ErrRefused) || Describe(err) != textUnreachable {
		t.Errorf("got %v", err)
	}
	if lookups.Load() < 2 {
		t.Error("there was no second lookup")
	}
}

// TestRebindingBetweenCalls: the first call is permitted; the next call to the same name is checked again.
func TestRebindingBetweenCalls(t *testing.T) {
	inner := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the inner server was reached") })
	serveOn(t, "127.0.0.2:"+port(inner.Listener), func(http.ResponseWriter, *http.Request) {})
	var lookups atomic.Int32
	g, err := New(Config{Log: slog.New(slog.DiscardHandler), Allow: "127.0.0.2", resolver: nameServer(t, func() []string {
		if lookups.Add(1) == 1 {
			return []string{"127.0.0.2"}
		}
		return []string{"127.0.0.1"}
	})})
	if err != nil {
		t.Fatal(err)
	}
	address := "rebind.test:" + port(inner.Listener)
	conn, err := g.dial(t.Context(), "tcp4", address)
	if err != nil {
		t.Fatalf("the first call: %v", err)
	}
	_ = conn.Close()
	var refused *RefusedError
	if _, err := g.dial(t.Context(), "tcp4", address); !errors.As(err, &refused) || refused.Address != "127.0.0.1:"+port(inner.Listener) {
		t.Errorf("the second call: %v", err)
	}
}

// TestEveryAddressOfANameIsChecked: a public address among private ones does not permit the others.
func TestEveryAddressOfANameIsChecked(t *testing.T) {
	inner := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the inner server was reached") })
	g, err := New(Config{Log: slog.New(slog.DiscardHandler), Allow: "127.0.0.3", resolver: nameServer(t, func() []string { return []string{"127.0.0.3", "127.0.0.1", "10.0.0.1"} })})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.dial(t.Context(), "tcp4", "many.test:"+port(inner.Listener)); err == nil {
		t.Error("connected")
	}
}

func TestAllowedNameMayLeadInside(t *testing.T) {
	server := serve(t, func(http.ResponseWriter, *http.Request) {})
	g, err := New(Config{Log: slog.New(slog.DiscardHandler), Allow: "git.internal", resolver: nameServer(t, func() []string { return []string{"127.0.0.1"} })})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := get(t, g.Client(Limits{}), "http://git.internal:"+port(server.Listener)); err != nil {
		t.Error(err)
	}
	if _, _, err := get(t, g.Client(Limits{}), "https://other.internal:"+port(server.Listener)); !errors.Is(err, ErrRefused) {
		t.Errorf("another name of the same address: %v", err)
	}
}

// nameServer runs a DNS server that answers every query for an IPv4 address with answers().
func nameServer(t *testing.T, answers func() []string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buffer := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			if reply, err := answerDNS(buffer[:n], answers); err == nil {
				_, _ = conn.WriteTo(reply, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func answerDNS(query []byte, answers func() []string) ([]byte, error) {
	var message dnsmessage.Message
	if err := message.Unpack(query); err != nil {
		return nil, err
	}
	question := message.Questions[0]
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: message.ID, Response: true, Authoritative: true, RecursionAvailable: true},
		Questions: message.Questions,
	}
	if question.Type == dnsmessage.TypeA {
		for _, text := range answers() {
			reply.Answers = append(reply.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: question.Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET},
				Body:   &dnsmessage.AResource{A: netip.MustParseAddr(text).As4()},
			})
		}
	}
	return reply.Pack()
}
