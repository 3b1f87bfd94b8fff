package gateway_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"buf.build/go/protovalidate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/gateway"
	"github.com/palisade/palisade/services/internal/inprocess"
	"github.com/palisade/palisade/services/internal/intake"
	"github.com/palisade/palisade/services/internal/unread"
)

// recorder is a service that records its calls and answers with answer. It runs behind real interceptors: validation
// and error mapping.
type recorder struct {
	deploymentsv1.UnimplementedDeploymentsServiceServer
	findingsv1.UnimplementedFindingsServiceServer
	findingsv1.UnimplementedSecretsServiceServer
	findingsv1.UnimplementedTriageServiceServer
	platformv1.UnimplementedMiscellaneousServiceServer
	projectsv1.UnimplementedProjectsServiceServer
	scansv1.UnimplementedScansServiceServer
	scansv1.UnimplementedReportUploadsServiceServer

	mu       sync.Mutex
	method   string
	request  proto.Message
	metadata metadata.MD
	unknown  map[string]int

	answer func(ctx context.Context, request proto.Message) (proto.Message, error)
	upload func(stream grpc.ClientStreamingServer[scansv1.UploadReportRequest, scansv1.UploadReportResponse]) error
}

// received is the memory budget for bodies.
var received = intake.New(4<<20, 1)

// intercept records, validates and answers every unary call.
func (s *recorder) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	message := request.(proto.Message)
	s.mu.Lock()
	s.method, s.request = info.FullMethod, message
	s.metadata, _ = metadata.FromIncomingContext(ctx)
	s.mu.Unlock()
	if request := unread.FromContext(ctx); request != nil {
		room := received.Share(intake.Caller{Kind: access.KindUser, ID: 1}, intake.Limits{})
		defer room.Release()
		if err := request(ctx, message, room); err != nil {
			return nil, apierr.Map(err)
		}
	}
	var response any
	err := protovalidate.Validate(message)
	var invalid *protovalidate.ValidationError
	switch {
	case errors.As(err, &invalid):
		return nil, apierr.Validation(invalid, message.ProtoReflect().Descriptor())
	case err != nil:
		return nil, apierr.Map(err)
	case s.answer != nil:
		response, err = s.answer(ctx, message)
	default:
		response, err = handler(ctx, request)
	}
	return response, apierr.Map(err)
}

func (s *recorder) UploadReport(stream grpc.ClientStreamingServer[scansv1.UploadReportRequest, scansv1.UploadReportResponse]) error {
	s.mu.Lock()
	s.metadata, _ = metadata.FromIncomingContext(stream.Context())
	s.mu.Unlock()
	return apierr.Map(s.upload(stream))
}

func (s *recorder) last() (string, proto.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.method, s.request
}

func (s *recorder) md() metadata.MD {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.metadata
}

func (s *recorder) countUnknown(method string, count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unknown[method] += count
}

// connect registers the recorder on an in-process connection.
func (s *recorder) connect(log *slog.Logger) grpc.ClientConnInterface {
	channel := inprocess.New(inprocess.Config{
		Unary: []grpc.UnaryServerInterceptor{s.intercept}, Logger: log,
	})
	deploymentsv1.RegisterDeploymentsServiceServer(channel, s)
	findingsv1.RegisterFindingsServiceServer(channel, s)
	findingsv1.RegisterSecretsServiceServer(channel, s)
	findingsv1.RegisterTriageServiceServer(channel, s)
	platformv1.RegisterMiscellaneousServiceServer(channel, s)
	projectsv1.RegisterProjectsServiceServer(channel, s)
	scansv1.RegisterScansServiceServer(channel, s)
	scansv1.RegisterReportUploadsServiceServer(channel, s)
	return channel
}

func allServices() []gateway.Service {
	return []gateway.Service{
		gateway.Expose(deploymentsv1.DeploymentsService_ServiceDesc.ServiceName,
			deploymentsv1.NewDeploymentsServiceClient, deploymentsv1.RegisterDeploymentsServiceHandlerClient),
		gateway.Expose(findingsv1.FindingsService_ServiceDesc.ServiceName,
			findingsv1.NewFindingsServiceClient, findingsv1.RegisterFindingsServiceHandlerClient),
		gateway.Expose(findingsv1.SecretsService_ServiceDesc.ServiceName,
			findingsv1.NewSecretsServiceClient, findingsv1.RegisterSecretsServiceHandlerClient),
		gateway.Expose(findingsv1.TriageService_ServiceDesc.ServiceName,
			findingsv1.NewTriageServiceClient, findingsv1.RegisterTriageServiceHandlerClient),
		gateway.Expose(platformv1.MiscellaneousService_ServiceDesc.ServiceName,
			platformv1.NewMiscellaneousServiceClient, platformv1.RegisterMiscellaneousServiceHandlerClient),
		gateway.Expose(projectsv1.ProjectsService_ServiceDesc.ServiceName,
			projectsv1.NewProjectsServiceClient, projectsv1.RegisterProjectsServiceHandlerClient),
		gateway.Expose(scansv1.ScansService_ServiceDesc.ServiceName,
			scansv1.NewScansServiceClient, scansv1.RegisterScansServiceHandlerClient),
		{Name: scansv1.ReportUploadsService_ServiceDesc.ServiceName},
	}
}

// start serves the recorder over HTTP. change, if not nil, alters the configuration.
func start(t testing.TB, s *recorder, change func(*gateway.Config)) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(newHandler(t, s, change))
	server.Start()
	t.Cleanup(server.Close)
	return server
}

func newHandler(t testing.TB, s *recorder, change func(*gateway.Config)) http.Handler {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	s.unknown = map[string]int{}
	config := gateway.Config{
		Conn: s.connect(log), Services: allServices(), Logger: log, UnknownFields: s.countUnknown,
		MaxBody: 1 << 20, MaxUpload: 4 << 20, Timeout: 20 * time.Second,
	}
	if change != nil {
		change(&config)
	}
	handler, err := gateway.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

// answerEmpty answers every unary call with the empty response of its method.
func answerEmpty(s *recorder) func(context.Context, proto.Message) (proto.Message, error) {
	return func(context.Context, proto.Message) (proto.Message, error) {
		method, _ := s.last()
		return emptyResponse(method)
	}
}

// do sends a request with a fixed request id and returns the response with its body.
func do(t testing.TB, method, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body == "" {
		request.Body, request.ContentLength = http.NoBody, 0
	}
	request.Header.Set("X-Request-Id", "test-1")
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := noRedirects.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

var noRedirects = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
	return http.ErrUseLastResponse
}}
