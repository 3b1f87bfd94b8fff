package gateway

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/klauspost/compress/gzhttp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/etag"
)

// download maps a GET to a server-streaming RPC that sends a file. The first message describes the file in its field
// "file" (name, media_type, size, sha256, completed_at). The other messages have the bytes. The field "offset" of the
// request skips the start of the file, and "limit" is how many bytes to send. The fields in the path are numbers.
type download struct {
	gateway       *gateway
	route         *route
	request       protoreflect.MessageType
	response      protoreflect.MessageType
	offset, limit protoreflect.FieldDescriptor
	file, chunk   protoreflect.FieldDescriptor
}

// rangeHeaders are the request headers that choose a part of a file. They never become metadata.
var rangeHeaders = [...]string{"Range", "If-Range"}

// headKey marks the context of a HEAD, which the router sees as a GET.
type headKey struct{}

// downloadHandler checks the shape of the RPC and returns its handler.
func (g *gateway) downloadHandler(rt *route) (runtime.HandlerFunc, error) {
	if rt.method.IsStreamingClient() || !rt.method.IsStreamingServer() {
		return nil, errors.New("download_path needs a server-streaming RPC")
	}
	d := &download{gateway: g, route: rt}
	var err error
	if d.request, err = protoregistry.GlobalTypes.FindMessageByName(rt.method.Input().FullName()); err != nil {
		return nil, err
	}
	if d.response, err = protoregistry.GlobalTypes.FindMessageByName(rt.method.Output().FullName()); err != nil {
		return nil, err
	}
	d.offset, d.limit = rt.method.Input().Fields().ByName("offset"), rt.method.Input().Fields().ByName("limit")
	d.file, d.chunk = rt.method.Output().Fields().ByName("file"), rt.method.Output().Fields().ByName("chunk")
	if d.offset == nil || d.limit == nil || d.file == nil || d.chunk == nil {
		return nil, errors.New("download_path needs a request with the fields offset and limit, and a response with the fields file and chunk")
	}
	for _, name := range rt.pathFields {
		if field := rt.method.Input().Fields().ByName(name); field == nil || field.Kind() != protoreflect.Int64Kind {
			return nil, fmt.Errorf("download_path names %s, which must be an int64 field of %s", name, rt.method.Input().FullName())
		}
	}
	return d.serve, nil
}

func (d *download) serve(w http.ResponseWriter, r *http.Request, pathValues map[string]string) {
	request := d.request.New()
	for name, value := range pathValues {
		field := request.Descriptor().Fields().ByName(protoreflect.Name(name))
		id, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			d.gateway.writeError(w, r, apierr.InvalidArgument(field.JSONName(), "%s: got %s, want a number", field.JSONName(), apierr.Quote(value)))
			return
		}
		request.Set(field, protoreflect.ValueOfInt64(id))
	}
	ctx, err := runtime.AnnotateContext(r.Context(), d.gateway.mux, r, d.route.fullMethod)
	if err != nil {
		d.gateway.writeError(w, r, err)
		return
	}
	if head, _ := r.Context().Value(headKey{}).(bool); head || r.Header.Get("Range") != "" || r.Header.Get("If-None-Match") != "" {
		d.servePart(ctx, w, r, request, head)
		return
	}
	stream, told, err := d.open(ctx, request)
	if err != nil {
		d.gateway.writeError(w, r, err)
		return
	}
	told.writeHeader(w.Header())
	d.send(ctx, w, stream, http.StatusOK, part{0, told.size})
}

// servePart answers a request that may want only a part of the file, or nothing of it. The first call describes the
// file, and a second one sends what is wanted of it, so neither is broken off.
func (d *download) servePart(ctx context.Context, w http.ResponseWriter, r *http.Request, request protoreflect.Message, head bool) {
	request.Set(d.limit, protoreflect.ValueOfInt64(0))
	stream, told, err := d.open(ctx, request)
	if err == nil {
		err = ended(stream, d.response)
	}
	if err != nil {
		d.gateway.writeError(w, r, err)
		return
	}
	header := w.Header()
	if etag.Matches(r.Header.Get("If-None-Match"), told.tag()) {
		header.Set("ETag", told.tag())
		w.WriteHeader(http.StatusNotModified)
		return
	}
	wanted, ranged, ok := wholeUnless(r.Header, told.size, told.tag(), told.modified())
	if !ok {
		header.Set("Content-Range", fmt.Sprintf("bytes */%d", told.size))
		d.gateway.writeError(w, r, &statusError{status: http.StatusRequestedRangeNotSatisfiable, err: apierr.InvalidArgument("Range",
			"Range: got %s, the file has %d bytes", apierr.Quote(r.Header.Get("Range")), told.size)})
		return
	}
	if !head {
		request.Set(d.offset, protoreflect.ValueOfInt64(wanted.offset))
		request.Set(d.limit, protoreflect.ValueOfInt64(wanted.length))
		if stream, _, err = d.open(ctx, request); err != nil {
			d.gateway.writeError(w, r, err)
			return
		}
	}
	told.writeHeader(header)
	status := http.StatusOK
	if ranged {
		status = http.StatusPartialContent
		header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", wanted.offset, wanted.offset+wanted.length-1, told.size))
	}
	if head {
		header.Set("Content-Length", strconv.FormatInt(wanted.length, 10))
		w.WriteHeader(status)
		return
	}
	d.send(ctx, w, stream, status, wanted)
}

// open calls the RPC, and reads the first message.
func (d *download) open(ctx context.Context, request protoreflect.Message) (grpc.ClientStream, toldFile, error) {
	stream, err := d.gateway.config.Conn.NewStream(ctx, &grpc.StreamDesc{StreamName: string(d.route.method.Name()), ServerStreams: true}, d.route.fullMethod)
	if err != nil {
		return nil, toldFile{}, err
	}
	if err := stream.SendMsg(request.Interface()); unlessEnded(err) != nil {
		return nil, toldFile{}, err
	}
	if err := stream.CloseSend(); err != nil {
		return nil, toldFile{}, err
	}
	first := d.response.New()
	if err := stream.RecvMsg(first.Interface()); err != nil {
		return nil, toldFile{}, err
	}
	return stream, describe(first.Get(d.file).Message()), nil
}

// send writes the bytes of a stream. Once the status is sent, only a connection that ends early tells the client that
// the body is not complete.
func (d *download) send(ctx context.Context, w http.ResponseWriter, stream grpc.ClientStream, status int, of part) {
	w.Header().Set("Content-Length", strconv.FormatInt(of.length, 10))
	w.WriteHeader(status)
	for left := of.length; left > 0; {
		message := d.response.New()
		err := stream.RecvMsg(message.Interface())
		if err == nil {
			var n int
			n, err = w.Write(message.Get(d.chunk).Bytes())
			left -= int64(n)
		}
		if err != nil {
			d.gateway.log.WarnContext(ctx, "a download ended early", "error", err)
			panic(http.ErrAbortHandler)
		}
	}
	_ = ended(stream, d.response) // all bytes are sent
}

// ended reads the end of a stream, so that the call is complete.
func ended(stream grpc.ClientStream, response protoreflect.MessageType) error {
	err := stream.RecvMsg(response.New().Interface())
	if err == nil {
		return errors.New("a download has more bytes than it should")
	}
	return unlessEnded(err)
}

// toldFile is what the first message says.
type toldFile struct {
	name, mediaType, sha256 string
	size                    int64
	completedAt             time.Time
}

func (f toldFile) tag() string { return `"` + f.sha256 + `"` }

// modified is the time of the file in the form of HTTP.
func (f toldFile) modified() string { return f.completedAt.UTC().Format(http.TimeFormat) }

// writeHeader describes the file. It is not compressed on the way: its entity tag and its ranges are about these bytes.
func (f toldFile) writeHeader(header http.Header) {
	header.Set("Content-Type", f.mediaType)
	header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": f.name}))
	header.Set("Accept-Ranges", "bytes")
	header.Set("ETag", f.tag())
	header.Set("Last-Modified", f.modified())
	header.Set(gzhttp.HeaderNoCompression, "1")
	if sum, err := hex.DecodeString(f.sha256); err == nil {
		header.Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum)+":")
	}
}

// describe reads the description of a file.
func describe(m protoreflect.Message) (f toldFile) {
	fields := m.Descriptor().Fields()
	f.name, f.mediaType = m.Get(fields.ByName("name")).String(), m.Get(fields.ByName("media_type")).String()
	f.sha256, f.size = m.Get(fields.ByName("sha256")).String(), m.Get(fields.ByName("size")).Int()
	if at, ok := m.Get(fields.ByName("completed_at")).Message().Interface().(*timestamppb.Timestamp); ok && at.IsValid() {
		f.completedAt = at.AsTime()
	}
	return f
}
