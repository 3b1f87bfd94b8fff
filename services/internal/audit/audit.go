package audit

import (
	"context"

	"google.golang.org/protobuf/proto"
)

// The kinds of actors beside those of access.Kind.
const (
	// KindJob is a background job.
	KindJob = "job"
	// KindHost is a source-code host whose webhook arrived.
	KindHost = "host"
	// KindOperator is who runs a command of the server on its machine.
	KindOperator = "operator"
)

// Actor is who acts.
type Actor struct {
	// Kind is user, token, job, host or operator.
	Kind string
	// ID is that of the user, token or job; 0 for hosts and operators.
	ID int64
	// Name is for people: e-mail address, name of the token, kind of the job, name of the host, account of the operator.
	Name string
	// UserID is the user, or the creator of the token; 0 for others.
	UserID int64
}

// Change notes, for the entry of the call or job that ctx belongs to, what happens to one object. Before is nil for an
// object that is created, after for one that is deleted. Fields with the secret option are redacted. Call it inside the
// store.Write that makes the change, with the context that it gave; it panics anywhere else, because what it notes
// could not be written together with the change. Where ctx acts for the server itself (tenant.System), the entry goes
// to the caller's first deployment; jobs and hosts have none, and must name it with tenant.NewContext.
func Change(ctx context.Context, kind string, id any, before, after proto.Message) {
	if r := recorderOf(ctx); r != nil {
		r.note(ctx, kind, id, before, after)
	}
}

// Begin makes an actor responsible for what is changed under the context that it returns, where no credential tells who
// acts: a source-code host whose signature was verified. Method is the full gRPC method or another name of the event.
// Entries are written only for transactions that call Change.
func Begin(ctx context.Context, actor Actor, method string) context.Context {
	outer := recorderOf(ctx)
	if outer == nil {
		return ctx
	}
	call := outer.call
	call.Actor, call.Method, call.Home = actor, method, 0
	ctx, _ = outer.trail.Record(ctx, call)
	return ctx
}

type recorderKey struct{}

func recorderOf(ctx context.Context) *Recorder {
	r, _ := ctx.Value(recorderKey{}).(*Recorder)
	return r
}
