package audit

import (
	"context"

	"google.golang.org/protobuf/proto"
)

// The kinds of actors in addition to access.Kind.
const (
	// KindJob is a background job.
	KindJob = "job"
	// KindHost is a source-code host that has sent a webhook.
	KindHost = "host"
	// KindOperator is a person who runs a server command on its machine.
	KindOperator = "operator"
)

// Actor is who acts.
type Actor struct {
	// Kind is user, token, job, host or operator.
	Kind string
	// ID is the id of the user, token or job; 0 for hosts and operators.
	ID int64
	// Name is for people: the e-mail address, token name, job kind, host name or operator account.
	Name string
	// UserID is the user, or the token's creator; otherwise 0.
	UserID int64
}

// Change records a change of one object in the entry of the call or job that ctx belongs to. before is nil for a
// new object, after for a deleted one. Fields with the secret option are redacted.
//
// Call it inside the store.Write that makes the change, with its context. It panics elsewhere, because the entry
// must be committed with the change. Under tenant.System the entry goes to the caller's first deployment. Jobs and
// hosts have none, and must set the deployment with tenant.NewContext.
func Change(ctx context.Context, kind string, id any, before, after proto.Message) {
	if r := recorderOf(ctx); r != nil {
		r.note(ctx, kind, id, before, after)
	}
}

// Begin sets the actor of changes under the returned context when no credential identifies one, for example a
// source-code host with a verified signature. method is the full gRPC method or another event name. Only
// transactions that call Change get an entry.
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
