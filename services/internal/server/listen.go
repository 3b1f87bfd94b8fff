package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/palisade/palisade/services/config"
)

// Addresses are the addresses that a server listens on. Port 0 in the configuration is replaced by the chosen port.
type Addresses struct {
	HTTP, GRPC, Metrics string
}

// listeners are bound before anything else, so that a server that was started twice by mistake stops before it touches
// the store.
type listeners struct {
	http, grpc, metrics net.Listener
}

func listen(ctx context.Context, cfg config.Config) (*listeners, error) {
	var l listeners
	for _, port := range []struct {
		key, address string
		to           *net.Listener
	}{{"http", cfg.HTTP, &l.http}, {"grpc", cfg.GRPC, &l.grpc}, {"metrics", cfg.Metrics, &l.metrics}} {
		var err error
		if *port.to, err = new(net.ListenConfig).Listen(ctx, "tcp", port.address); err != nil {
			return nil, errors.Join(ListenError(port.key, port.address, err), l.close())
		}
	}
	return &l, nil
}

// ListenError explains why the server cannot listen on an address, and what to do.
func ListenError(key, address string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s: the address %s is in use by another program, perhaps another Palisade: stop it or choose another address with --%s", key, address, key)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s: the address %s may not be used by this user: choose a port above 1023 with --%s, or allow it (CAP_NET_BIND_SERVICE)", key, address, key)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s: this machine does not have the address %s: choose another with --%s", key, address, key)
	}
	return fmt.Errorf("%s: listen on %s: %w", key, address, err)
}

func (l *listeners) addresses() Addresses {
	return Addresses{HTTP: l.http.Addr().String(), GRPC: l.grpc.Addr().String(), Metrics: l.metrics.Addr().String()}
}

// close frees the ports. Servers that own a listener have closed it already.
func (l *listeners) close() error {
	var errs []error
	for _, listener := range []net.Listener{l.http, l.grpc, l.metrics} {
		if listener == nil {
			continue
		}
		if err := listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
