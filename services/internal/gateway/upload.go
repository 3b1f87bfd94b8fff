package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/grpc-ecosystem/grpc-gateway/v2/utilities"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/gateway/lenient"
)

// chunkSize is the number of bytes of an upload in one message.
const chunkSize = 256 << 10

// upload maps a POST with a raw body to a client-streaming RPC. Its request message has one bytes field (the chunk),
// one message field (the target, filled from the query) and the fields in the path. If the target has a field
// content_encoding, it gets the header of that name, and the bytes are passed on unchanged. Other fields of the target
// may name their header by an option (palisade.options.v1.header); the query cannot set these.
type upload struct {
	gateway  *gateway
	route    *route
	request  protoreflect.MessageType
	response protoreflect.MessageType
	chunk    protoreflect.FieldDescriptor
	target   protoreflect.FieldDescriptor
	encoding protoreflect.FieldDescriptor            // of the target; nil when it has none
	headers  map[string]protoreflect.FieldDescriptor // of the target, by canonical header name
}

// uploadHandler checks the shape of the RPC and returns its handler.
func (g *gateway) uploadHandler(rt *route) (runtime.HandlerFunc, error) {
	if !rt.method.IsStreamingClient() || rt.method.IsStreamingServer() {
		return nil, errors.New("upload_path needs a client-streaming RPC")
	}
	u := &upload{gateway: g, route: rt}
	var err error
	if u.request, err = protoregistry.GlobalTypes.FindMessageByName(rt.method.Input().FullName()); err != nil {
		return nil, err
	}
	if u.response, err = protoregistry.GlobalTypes.FindMessageByName(rt.method.Output().FullName()); err != nil {
		return nil, err
	}
	fields := rt.method.Input().Fields()
	for i := range fields.Len() {
		switch field := fields.Get(i); {
		case field.IsList() || field.IsMap():
		case field.Kind() == protoreflect.BytesKind && u.chunk == nil:
			u.chunk = field
		case field.Kind() == protoreflect.MessageKind && u.target == nil:
			u.target = field
		}
	}
	if u.chunk == nil || u.target == nil {
		return nil, fmt.Errorf("upload_path needs a request with a bytes field and a message field, %s has not", rt.method.Input().FullName())
	}
	for _, name := range rt.pathFields {
		if field := fields.ByName(name); field == nil || field.Kind() != protoreflect.StringKind || field.IsList() {
			return nil, fmt.Errorf("upload_path names %s, which must be a string field of %s", name, rt.method.Input().FullName())
		}
	}
	if field := u.target.Message().Fields().ByName("content_encoding"); field != nil && field.Kind() == protoreflect.StringKind {
		u.encoding = field
	}
	if u.headers, err = headerFields(u.target.Message()); err != nil {
		return nil, err
	}
	for name := range u.headers {
		g.streamHeaders[name] = true
	}
	return u.serve, nil
}

// headerFields finds the fields that are filled from headers.
func headerFields(target protoreflect.MessageDescriptor) (map[string]protoreflect.FieldDescriptor, error) {
	found := map[string]protoreflect.FieldDescriptor{}
	for i := range target.Fields().Len() {
		field := target.Fields().Get(i)
		name := headerOf(field)
		if name == "" {
			continue
		}
		if field.Kind() != protoreflect.StringKind || field.IsList() {
			return nil, fmt.Errorf("%s is filled from a header and must be a string", field.FullName())
		}
		found[http.CanonicalHeaderKey(name)] = field
	}
	return found, nil
}

func (u *upload) serve(w http.ResponseWriter, r *http.Request, pathValues map[string]string) {
	g := u.gateway
	first, err := u.first(r, pathValues)
	if err != nil {
		u.fail(w, r, err)
		return
	}
	if r.ContentLength > g.config.MaxUpload {
		u.fail(w, r, bodyTooLarge(g.config.MaxUpload))
		return
	}
	ctx, err := runtime.AnnotateContext(r.Context(), g.mux, r, u.route.fullMethod)
	if err != nil {
		u.fail(w, r, err)
		return
	}
	source := newUploadReader(r.Body, http.NewResponseController(w), g.config.UploadIdleTimeout, g.config.UploadPace, g.config.MaxUpload)
	response, headers, err := u.send(ctx, first, source)
	if err != nil {
		u.fail(w, r, err)
		return
	}
	ctx = runtime.NewServerMetadataContext(ctx, runtime.ServerMetadata{HeaderMD: headers})
	runtime.ForwardResponseMessage(ctx, g.mux, g.json, w, r, response, g.mux.GetForwardResponseOptions()...)
}

// fail writes the error of an upload that may still be sending: the connection cannot serve another request.
func (u *upload) fail(w http.ResponseWriter, r *http.Request, err error) {
	closeAfter(w, r)
	u.gateway.writeError(w, r, u.asParameters(err))
}

// asParameters renames the fields of the target for the client. Over HTTP, target.project is the parameter project, and
// a field that is filled from a header has the header's name.
func (u *upload) asParameters(err error) error {
	prefix := u.target.JSONName() + "."
	st, ok := status.FromError(err)
	if !ok || !strings.Contains(st.Message(), prefix) {
		return err
	}
	text, renamed := st.Message(), &errdetails.BadRequest{}
	for _, detail := range st.Details() {
		for _, violation := range badRequest(detail).GetFieldViolations() {
			field := u.parameter(strings.TrimPrefix(violation.GetField(), prefix))
			description := strings.Replace(violation.GetDescription(), violation.GetField(), field, 1)
			text = strings.Replace(text, violation.GetDescription(), description, 1)
			renamed.FieldViolations = append(renamed.FieldViolations,
				&errdetails.BadRequest_FieldViolation{Field: field, Description: description})
		}
	}
	if len(renamed.GetFieldViolations()) == 0 {
		return err
	}
	return apierr.New(st.Code(), apierr.ReasonOf(err), text, renamed)
}

// parameter is the name of a target field over HTTP.
func (u *upload) parameter(field string) string {
	for _, filled := range u.headers {
		if filled.JSONName() == field || string(filled.Name()) == field {
			return headerOf(filled)
		}
	}
	return field
}

// headerOf is the header that fills a field, in the spelling of its option. It is empty for query fields.
func headerOf(field protoreflect.FieldDescriptor) string {
	name, _ := proto.GetExtension(field.Options(), optionsv1.E_Header).(string)
	return name
}

func badRequest(detail any) *errdetails.BadRequest {
	found, _ := detail.(*errdetails.BadRequest)
	return found
}

// first builds the first message, which describes the upload.
func (u *upload) first(r *http.Request, pathValues map[string]string) (proto.Message, error) {
	var skip []protoreflect.Name
	if u.encoding != nil {
		skip = append(skip, u.encoding.Name())
	}
	for _, field := range u.headers {
		skip = append(skip, field.Name())
	}
	if err := u.checkParameters(r.URL.RawQuery, lenient.Fields(skip...)); err != nil {
		return nil, err
	}
	values, err := lenient.Query(r.URL.RawQuery, u.target.Message(), lenient.Fields(skip...))
	if err != nil {
		return nil, err
	}
	message := u.request.New()
	target := message.Mutable(u.target).Message()
	err = new(runtime.DefaultQueryParser).Parse(target.Interface(), values, utilities.NewDoubleArray(nil))
	if err != nil {
		return nil, apierr.InvalidArgument("query", "the query does not fit the upload: %v", err)
	}
	encoding, err := contentEncoding(r, u.encoding != nil)
	if err != nil {
		return nil, err
	}
	if encoding != "" {
		target.Set(u.encoding, protoreflect.ValueOfString(encoding))
	}
	for name, field := range u.headers {
		value := r.Header.Get(name)
		if !utf8.ValidString(value) {
			return nil, apierr.InvalidArgument(name, "the header %s must be UTF-8", name)
		}
		target.Set(field, protoreflect.ValueOfString(value))
	}
	for name, value := range pathValues {
		message.Set(u.request.Descriptor().Fields().ByName(protoreflect.Name(name)), protoreflect.ValueOfString(value))
	}
	return message.Interface(), nil
}

// checkParameters refuses parameters that the upload does not have. A misspelled one would be ignored otherwise, and
// the report stored in the wrong place. Deliveries of other systems, which come with headers, may add parameters.
func (u *upload) checkParameters(query string, skip func(protoreflect.FieldDescriptor) bool) error {
	name, unknown := lenient.Unknown(query, u.target.Message(), skip)
	if !unknown || len(u.headers) > 0 {
		return nil
	}
	var allowed []string
	for i := range u.target.Message().Fields().Len() {
		if field := u.target.Message().Fields().Get(i); !skip(field) {
			allowed = append(allowed, string(field.Name()))
		}
	}
	return apierr.InvalidArgument(name, "%s is not a parameter of this upload; allowed are %s", apierr.Quote(name), strings.Join(allowed, ", "))
}

// contentEncoding reads the header: "gzip" or "" for none.
func contentEncoding(r *http.Request, canGzip bool) (string, error) {
	got := strings.ToLower(strings.TrimSpace(strings.Join(r.Header.Values("Content-Encoding"), ",")))
	switch {
	case got == "" || got == "identity":
		return "", nil
	case (got == "gzip" || got == "x-gzip") && canGzip:
		return "gzip", nil
	case canGzip:
		return "", unsupportedEncoding(got, "gzip or identity")
	}
	return "", unsupportedEncoding(got, "identity")
}

// received is the result of the RPC.
type received struct {
	response proto.Message
	headers  metadata.MD
	err      error
}

// send streams the body into the RPC and waits for the response concurrently. A server that refuses early ends the
// upload at once, even while the client is silent. A truncated body cancels the RPC; the stream is never closed as if
// it were complete.
//
// While the body is read, the RPC does not follow the request's cancellation. net/http cancels the request when reading
// fails for any reason, and that reason would be lost behind "cancelled".
func (u *upload) send(requestCtx context.Context, first proto.Message, source *uploadReader) (proto.Message, metadata.MD, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(requestCtx))
	defer cancel()
	if deadline, ok := requestCtx.Deadline(); ok {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, deadline)
		defer stop()
	}
	description := &grpc.StreamDesc{StreamName: string(u.route.method.Name()), ClientStreams: true}
	stream, err := u.gateway.config.Conn.NewStream(ctx, description, u.route.fullMethod)
	if err != nil {
		return nil, nil, err
	}
	done := make(chan received, 1)
	go func() {
		response := u.response.New().Interface()
		err := stream.RecvMsg(response)
		source.stop()
		headers, _ := stream.Header()
		done <- received{response, headers, err}
	}()
	if err := u.sendAll(stream, first, source); err != nil {
		cancel()
		<-done
		return nil, nil, err
	}
	defer context.AfterFunc(requestCtx, cancel)()
	end := <-done
	return end.response, end.headers, end.err
}

// sendAll sends the first message and the chunks. It returns nil when the response is expected: after the last chunk,
// and when the server has ended the RPC early.
func (u *upload) sendAll(stream grpc.ClientStream, first proto.Message, source *uploadReader) error {
	if err := stream.SendMsg(first); err != nil {
		return unlessEnded(err)
	}
	for {
		// Allocate a new buffer each time: in process, the receiver gets this very slice.
		buffer := make([]byte, chunkSize)
		n, readErr := io.ReadFull(source, buffer)
		switch {
		case readErr == nil || source.finished():
		case errors.Is(readErr, errStopped):
			return nil
		default:
			// The last partial chunk is useless, because the call is cancelled.
			return readError(source.failure())
		}
		if n > 0 {
			message := u.request.New()
			message.Set(u.chunk, protoreflect.ValueOfBytes(buffer[:n:n]))
			if err := stream.SendMsg(message.Interface()); err != nil {
				return unlessEnded(err)
			}
		}
		if source.finished() {
			return stream.CloseSend()
		}
	}
}

// unlessEnded hides io.EOF, by which SendMsg reports that the server has ended the RPC. RecvMsg returns the reason.
func unlessEnded(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
