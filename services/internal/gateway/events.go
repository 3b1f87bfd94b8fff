package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/klauspost/compress/gzhttp"
	"github.com/munnerz/goautoneg"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/gateway/lenient"
)

// eventStream is the media type of server-sent events.
const eventStream = "text/event-stream"

// longestPoll is how much longer than Config.Timeout a request may wait for its first message.
const longestPoll = time.Minute

// events maps a GET to a server-streaming RPC. Callers that accept text/event-stream get all messages as server-sent
// events, others get the first message as JSON. The field resume_token of a message is the id of its event.
type events struct {
	gateway  *gateway
	route    *route
	request  protoreflect.MessageType
	response protoreflect.MessageType
	resume   protoreflect.FieldDescriptor            // resume_token of the response
	headers  map[string]protoreflect.FieldDescriptor // of the request, by canonical header name
}

// eventsHandler checks the shape of the RPC and returns its handler.
func (g *gateway) eventsHandler(rt *route) (runtime.HandlerFunc, error) {
	if rt.method.IsStreamingClient() || !rt.method.IsStreamingServer() {
		return nil, errors.New("events_path needs a server-streaming RPC")
	}
	e := &events{gateway: g, route: rt}
	var err error
	if e.request, err = protoregistry.GlobalTypes.FindMessageByName(rt.method.Input().FullName()); err != nil {
		return nil, err
	}
	if e.response, err = protoregistry.GlobalTypes.FindMessageByName(rt.method.Output().FullName()); err != nil {
		return nil, err
	}
	if e.resume = rt.method.Output().Fields().ByName("resume_token"); e.resume == nil || e.resume.Kind() != protoreflect.StringKind {
		return nil, fmt.Errorf("events_path needs a string field resume_token in %s", rt.method.Output().FullName())
	}
	if e.headers, err = headerFields(rt.method.Input()); err != nil {
		return nil, err
	}
	g.streamHeaders["Accept"] = true
	for name := range e.headers {
		g.streamHeaders[name] = true
	}
	return e.serve, nil
}

func (e *events) serve(w http.ResponseWriter, r *http.Request, pathValues map[string]string) {
	g := e.gateway
	live := acceptsEvents(r.Header.Get("Accept"))
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(g.config.Timeout + longestPoll + writeGrace))
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	timer := time.AfterFunc(g.config.Timeout+longestPoll, cancel) // for the first message
	stream, first, err := e.open(ctx, r, pathValues)
	timer.Stop()
	if err != nil {
		g.writeError(w, r, err)
		return
	}
	if live {
		e.stream(w, r, stream, first)
		return
	}
	ctx = runtime.NewServerMetadataContext(ctx, runtime.ServerMetadata{})
	runtime.ForwardResponseMessage(ctx, g.mux, g.json, w, r, first, g.mux.GetForwardResponseOptions()...)
}

// acceptsEvents reports whether an Accept header names server-sent events. Browsers send nothing else for them. The
// quality 0 means that they are not acceptable.
func acceptsEvents(accept string) bool {
	return slices.ContainsFunc(goautoneg.ParseAccept(accept), func(a goautoneg.Accept) bool {
		return strings.EqualFold(a.Type+"/"+a.SubType, eventStream) && a.Q > 0
	})
}

// open starts the RPC and receives its first message. An invalid query is reported after the caller was authorized.
func (e *events) open(ctx context.Context, r *http.Request, pathValues map[string]string) (grpc.ClientStream, proto.Message, error) {
	request, invalid := e.message(r, pathValues)
	ctx, err := runtime.AnnotateContext(ctx, e.gateway.mux, r, e.route.fullMethod)
	if err != nil {
		return nil, nil, err
	}
	description := &grpc.StreamDesc{StreamName: string(e.route.method.Name()), ServerStreams: true}
	stream, err := e.gateway.config.Conn.NewStream(ctx, description, e.route.fullMethod)
	if err != nil {
		return nil, nil, err
	}
	if err := stream.SendMsg(request); unlessEnded(err) != nil {
		return nil, nil, err
	}
	if err := stream.CloseSend(); err != nil {
		return nil, nil, err
	}
	first := e.response.New().Interface()
	err = stream.RecvMsg(first)
	switch {
	case invalid != nil && (err == nil || status.Code(err) == codes.InvalidArgument):
		return nil, nil, invalid
	case errors.Is(err, io.EOF):
		return nil, nil, apierr.Unavailable(nil, "the stream ended without a message: connect again")
	}
	return stream, first, err
}

// message builds the request from the query, the headers and the path. It has the path if the rest is invalid.
func (e *events) message(r *http.Request, pathValues map[string]string) (proto.Message, error) {
	request := e.request.New().Interface()
	values, err := lenient.Query(r.URL.RawQuery, e.route.method.Input(), lenient.Fields(e.route.pathFields...))
	if err == nil && len(values) > 0 {
		if failed := runtime.PopulateQueryParameters(request, values, noFilter); failed != nil {
			err = apierr.InvalidArgument("query", "%s", failed)
		}
	}
	if err != nil {
		proto.Reset(request)
	}
	for name, field := range e.headers {
		if value := r.Header.Get(name); value != "" && err == nil {
			request.ProtoReflect().Set(field, protoreflect.ValueOfString(strings.ToValidUTF8(value, "")))
		}
	}
	for name, value := range pathValues {
		if failed := runtime.PopulateFieldFromPath(request, name, value); failed != nil {
			err = apierr.InvalidArgument(name, "%s", failed)
		}
	}
	return request, err
}

// stream writes the first message and all further ones. An error ends the stream with an event "error"; clients connect
// again with the id of the last event.
func (e *events) stream(w http.ResponseWriter, r *http.Request, stream grpc.ClientStream, message proto.Message) {
	header := w.Header()
	header.Set("Content-Type", eventStream)
	header.Set("X-Accel-Buffering", "no") // for proxies that collect responses
	header.Set(gzhttp.HeaderNoCompression, "1")
	callFrom(r.Context()).quota.WriteHeader(header)
	control := http.NewResponseController(w)
	var buffer []byte
	for {
		buffer = e.append(buffer[:0], message)
		if err := writeNow(w, control, buffer); err != nil {
			return
		}
		message = e.response.New().Interface()
		if err := stream.RecvMsg(message); err != nil {
			if r.Context().Err() == nil && !errors.Is(err, io.EOF) {
				body := apierr.HTTPBody(apierr.Map(err), RequestID(r.Context()))
				_ = writeNow(w, control, fmt.Appendf(buffer[:0], "event: error\ndata: %s\n\n", body))
			}
			return
		}
	}
}

// append writes a message as an event. A message with nothing but a resume token is an id without data, which clients
// remember and do not report.
func (e *events) append(b []byte, message proto.Message) []byte {
	b = fmt.Appendf(b, "id: %s\n", message.ProtoReflect().Get(e.resume).String())
	heartbeat := true
	message.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		heartbeat = field == e.resume
		return heartbeat
	})
	if !heartbeat {
		b = append(b, "data: "...)
		if own, ok := message.(appender); ok {
			b = own.AppendJSON(b)
		}
		b = append(b, '\n')
	}
	return append(b, '\n')
}

// writeNow sends data to the client, which has writeGrace to take it.
func writeNow(w http.ResponseWriter, control *http.ResponseController, data []byte) error {
	_ = control.SetWriteDeadline(time.Now().Add(writeGrace))
	if _, err := w.Write(data); err != nil {
		return err
	}
	return control.Flush()
}
