package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/grpc-ecosystem/grpc-gateway/v2/utilities"
	"google.golang.org/protobuf/proto"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/gateway/lenient"
	"github.com/palisade/palisade/services/internal/intake"
	"github.com/palisade/palisade/services/internal/quota"
	"github.com/palisade/palisade/services/internal/unread"
)

// writeGrace is how long a client may take to read the response, beyond the request's own timeout.
const writeGrace = time.Minute

// longestStream ends a stream of events. Clients connect again, perhaps to another node.
const longestStream = 6 * time.Hour

// call is the state of a request after routing.
type call struct {
	route *route
	// body is the JSON body; nil for RPCs without one.
	body *body
	// ifNoneMatch lists the entity tags that the caller has.
	ifNoneMatch string
	// quota is the rate limit state for the response.
	quota quota.Report
	// notModified is true when the caller already has this response.
	notModified bool
	// buffer holds the body of the response. nil means that it must not be reused.
	buffer *[]byte
}

type callKey struct{}

func callFrom(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// perCall runs between the router and the generated code of the RPC.
func (g *gateway) perCall(next runtime.HandlerFunc) runtime.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request, pathValues map[string]string) {
		pattern, _ := runtime.HTTPPattern(r.Context())
		key := r.Method + " " + pattern.String()
		if p := probeFrom(r.Context()); p != nil {
			p.matched = key
			return
		}
		rt := g.routes[key]
		if rt == nil {
			g.writeError(w, r, apierr.Internal(errors.New("gateway: no descriptor declares the route "+key)))
			return
		}
		if maturity := rt.maturity(); maturity != "" {
			w.Header().Set("X-Api-Maturity", maturity)
		}
		if err := checkPathValues(rt.method.Input(), pathValues, r.URL.Path); err != nil {
			g.writeError(w, r, err)
			return
		}
		timeout := g.config.Timeout
		control := http.NewResponseController(w)
		switch {
		case rt.upload, rt.download:
			timeout = g.config.UploadTimeout
			_ = control.SetWriteDeadline(time.Now().Add(timeout + writeGrace))
		case rt.events:
			timeout = longestStream
		}
		c := &call{route: rt, ifNoneMatch: r.Header.Get("If-None-Match")}
		ctx := quota.NewContext(context.WithValue(r.Context(), callKey{}, c), &c.quota)
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		r = r.WithContext(ctx)
		if !rt.upload && !rt.events && !rt.download {
			if request := g.prepare(w, r, c, control); request != nil {
				r = r.WithContext(unread.NewContext(ctx, request))
			}
		}
		// Over HTTP/1 the response is written when next returns. Over HTTP/2 a broken connection may still be writing
		// it.
		if r.ProtoMajor == 1 {
			c.buffer = buffers.Get().(*[]byte)
			defer func() {
				if cap(*c.buffer) <= maxKeptBuffer {
					buffers.Put(c.buffer)
				}
			}()
		}
		next(w, r, pathValues)
	}
}

// buffers reuses response buffers. Allocating one for a page of a list costs about as much as filling it.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// maxKeptBuffer keeps single large responses from staying in memory.
const maxKeptBuffer = 1 << 20

// prepare takes the body away from the generated code, so that the interceptors decode it. It replaces the query by one
// that grpc-gateway's parser cannot fail on. The interceptors report errors in both at their place in the chain. It
// returns nil when the whole request is known already.
func (g *gateway) prepare(w http.ResponseWriter, r *http.Request, c *call, control *http.ResponseController) unread.Request {
	most := g.config.MaxBody
	if c.route.rule.GetPermission() == optionsv1.Permission_PERMISSION_PUBLIC {
		most = min(most, intake.Small) // anyone can send these, so they must be cheap
	}
	source := http.MaxBytesReader(w, r.Body, most)
	r.Body = http.NoBody
	r.PostForm = url.Values{} // keeps ParseForm away from the body
	r.Form = url.Values{}
	if c.route.hasBody {
		c.body = &body{source: source, control: control, size: r.ContentLength}
	}
	if r.ContentLength > most {
		return undecodable(bodyTooLarge(most))
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return undecodable(unsupportedEncoding(encoding, "identity"))
	}
	if c.route.hasBody {
		return func(ctx context.Context, into proto.Message, room *intake.Share) error {
			c.body.room = room
			if err := g.json.decode(ctx, c, into); err != nil || c.route.httpMethod != http.MethodDelete {
				return err
			}
			return addQuery(r.URL.RawQuery, c.route, into)
		}
	}
	values, err := lenient.Query(r.URL.RawQuery, c.route.method.Input(), lenient.Fields(c.route.pathFields...))
	if err != nil {
		return undecodable(err)
	}
	r.Form = values
	return nil
}

// addQuery adds the query of a DELETE to what its body says. Many clients and proxies drop the body of a DELETE, so the
// same fields may be in either; lists are joined.
func addQuery(raw string, rt *route, into proto.Message) error {
	values, err := lenient.Query(raw, rt.method.Input(), lenient.Fields(rt.pathFields...))
	if err != nil {
		return err
	}
	query := into.ProtoReflect().New().Interface()
	if err := runtime.PopulateQueryParameters(query, values, noFilter); err != nil {
		return apierr.InvalidArgument("query", "%s", err)
	}
	proto.Merge(into, query)
	return nil
}

// noFilter leaves all fields to the query.
var noFilter = utilities.NewDoubleArray(nil)

// undecodable is a request that is known to be invalid before it is decoded.
func undecodable(err error) unread.Request {
	return func(context.Context, proto.Message, *intake.Share) error { return err }
}

// closeAfter closes the connection after the response when the body is not read to its end. HTTP/2 resets the stream by
// itself.
func closeAfter(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
}

// body is a JSON body that has not been decoded.
type body struct {
	source  io.Reader
	control *http.ResponseController
	size    int64         // Content-Length; -1 when unknown
	room    *intake.Share // set before it is read
	read    int64
	ended   bool
}

// Read removes the read deadline at the end of the body. net/http keeps reading the connection to detect that the
// client disconnects, and would mistake an expired deadline for that.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.source.Read(p)
	b.read += int64(n)
	if errors.Is(err, io.EOF) {
		b.ended = true
		_ = b.control.SetReadDeadline(time.Time{})
	}
	if full := b.room.Receive(b.read); full != nil {
		return 0, full
	}
	return n, err
}

// left reports whether parts of the body may not have arrived.
func (b *body) left() bool { return b != nil && b.size != 0 && !b.ended }

// readError is the error for a body that could not be read.
func readError(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return bodyTooLarge(tooLarge.Limit)
	case errors.Is(err, errSlow):
		return &statusError{status: http.StatusRequestTimeout, err: err}
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return &statusError{status: http.StatusRequestTimeout, err: apierr.DeadlineExceeded(err)}
	case errors.Is(err, context.Canceled):
		return apierr.Cancelled(err)
	case apierr.ReasonOf(err) != errorsv1.Reason_REASON_UNSPECIFIED:
		return err // the budget refused it
	}
	return apierr.InvalidArgument("body", "the body ended before its announced length")
}

func bodyTooLarge(limit int64) error {
	return apierr.TooLarge("the body must have at most %d bytes", limit)
}

func unsupportedEncoding(got, allowed string) error {
	return &statusError{
		status: http.StatusUnsupportedMediaType,
		err: apierr.InvalidArgument("Content-Encoding", "Content-Encoding must be %s, got %s",
			allowed, apierr.Quote(got)),
	}
}

// statusError is an error with an HTTP status that no gRPC code has.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }
