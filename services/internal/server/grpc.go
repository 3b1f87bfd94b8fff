package server

import (
	"crypto/tls"
	"time"

	"github.com/fullstorydev/grpchan"
	"google.golang.org/grpc"
	"google.golang.org/grpc/channelz/service"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/chain"
	"github.com/palisade/palisade/services/internal/telemetry"
	"github.com/palisade/palisade/services/internal/unread"
)

const (
	// handshakeTimeout limits the handshake of a new connection.
	handshakeTimeout = 20 * time.Second
	// pingEvery and pingTimeout detect connections to peers that have gone silently.
	pingEvery   = 2 * time.Minute
	pingTimeout = 20 * time.Second
	// minPingEvery is how often a client may ping. A client that pings more often is disconnected.
	minPingEvery = 20 * time.Second
	// streamWorkers is the number of permanent goroutines for calls. A new goroutine would grow its stack five times
	// between the interceptors and the database, which cost a twentieth of a page of findings. More concurrent calls
	// get new goroutines.
	streamWorkers = 32
	// streamWindow and connectionWindow are how many bytes a client may send before they are read. By default both grow
	// to 16 MB on fast networks, for each call that has not been read. A message that is being read can always
	// arrive completely.
	streamWindow, connectionWindow = 128 << 10, 1 << 20
	// writeBuffer is how many bytes a connection collects before it writes. A page of findings has 170 KB.
	writeBuffer = 128 << 10
)

// collect registers all services in one list, for the gRPC port and the in-process connection. The rules are read from
// it before there is a server, because the interceptors need them.
func collect(cfg config.Config, list []Service, p *probes) grpchan.HandlerMap {
	handlers := grpchan.HandlerMap{}
	for _, group := range list {
		group.RegisterGRPC(handlers)
	}
	healthv1.RegisterHealthServer(handlers, p.health)
	reflection.Register(handlers)
	if cfg.Channelz {
		service.RegisterChannelzServiceToServer(handlers)
	}
	return handlers
}

// grpcServer creates the server of the gRPC port. tlsConfig is nil for plain text.
func grpcServer(cfg config.Config, handlers grpchan.HandlerMap, links []chain.Link, tracing *telemetry.Tracing, tlsConfig *tls.Config) *grpc.Server {
	links = append([]chain.Link{countAbandoned}, links...)
	options := append(chain.ServerOptions(tracing.ServerHandler(), links), connectionLimits(cfg)...)
	options = append(options, grpc.ForceServerCodecV2(listCodec{encoding.GetCodecV2(proto.Name)}),
		grpc.NumStreamWorkers(streamWorkers), grpc.WriteBufferSize(writeBuffer), grpc.InTapHandle(countLost(handlers)))
	if tlsConfig != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(tlsConfig)))
	}
	server := grpc.NewServer(options...)
	handlers.ForEach(func(desc *grpc.ServiceDesc, service any) { server.RegisterService(unread.Service(desc), service) })
	return server
}

// connectionLimits limit what one connection can occupy.
func connectionLimits(cfg config.Config) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(int(cfg.MaxBody)),
		grpc.MaxConcurrentStreams(uint32(cfg.MaxStreams)),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connectionWindow),
		grpc.MaxHeaderListSize(uint32(cfg.MaxHeader)),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: cfg.IdleTimeout,
			Time:              pingEvery,
			Timeout:           pingTimeout,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime:             minPingEvery,
			PermitWithoutStream: true,
		}),
		// Stop then waits for the handlers that it cut off, so that the database is not closed while they run.
		grpc.WaitForHandlers(true),
	}
}
