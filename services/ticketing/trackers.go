package ticketing

import (
	"context"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/ticketinginstance"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/host"
	"github.com/palisade/palisade/services/ticketing/tracker"
)

// open returns the tracker of an instance with its credential.
func (d *desk) open(instance *ent.TicketingInstance) (tracker.Tracker, error) {
	token, err := d.seals.Open(ticketinginstance.Table, sealedToken, instance.DeploymentID, instance.ID, instance.Token)
	if err != nil {
		return nil, err
	}
	return tracker.Open(tracker.Config{
		Kind: tracker.Kind(instance.Kind), BaseURL: instance.BaseURL, User: instance.Account, Token: token, Client: d.egress.Client(connect.Limits),
	})
}

// note stores whether the tracker accepted the credential in a call that ended with an error, or with nil.
func (d *desk) note(ctx context.Context, instance *ent.TicketingInstance, result error) error {
	refused := host.Is(result, host.Unauthorized)
	if refused == instance.Refused || result != nil && !refused {
		return nil
	}
	instance.Refused = refused
	return d.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.TicketingInstance.Update().Where(ticketinginstance.ID(instance.ID)).SetRefused(refused).Exec(ctx)
	})
}

// endsAll reports whether an error of one call means that the next ones fail, too.
func endsAll(err error) bool {
	return host.Is(err, host.Unauthorized) || err != nil && connect.Temporary(err)
}

// keyOf returns the key of a ticket by its web page; false if it is not of the instance.
func keyOf(instance *ent.TicketingInstance, ticketURL string) (string, bool) {
	return tracker.Key(tracker.Kind(instance.Kind), instance.BaseURL, ticketURL)
}

// projectsOf are the tracker's projects that an instance names.
func projectsOf(instance *ent.TicketingInstance) (list []string) {
	if instance.Project != "" {
		list = append(list, instance.Project)
	}
	for _, m := range instance.Mappings {
		if !slices.Contains(list, m.Project) {
			list = append(list, m.Project)
		}
	}
	return list
}

// mayName refuses a project that the instance does not name, to callers who may not change the instance: others may
// read the tickets there.
func mayName(ctx context.Context, field string, instance *ent.TicketingInstance, project string) error {
	if names := projectsOf(instance); project != "" && !slices.Contains(names, project) && !mayManage(ctx) {
		return apierr.InvalidArgument(field, "%s must be a project that the ticketing instance names: %s", field, strings.Join(names, ", "))
	}
	return nil
}

// mayManage reports whether the caller may change instances.
func mayManage(ctx context.Context) bool {
	caller, called := access.FromContext(ctx)
	grant, in := access.GrantFromContext(ctx)
	rule := &optionsv1.MethodRule{Permission: optionsv1.Permission_PERMISSION_MANAGE, Schemes: []optionsv1.Scheme{caller.Scheme}}
	return called && in && access.Authorize(rule, caller, grant) == nil
}

// projectFor is the tracker's project for the findings of a project; empty if there is none.
func projectFor(instance *ent.TicketingInstance, name string) string {
	for _, m := range instance.Mappings {
		if matched, err := doublestar.Match(strings.ToLower(m.Repository), strings.ToLower(name)); err == nil && matched {
			return m.Project
		}
	}
	return instance.Project
}
