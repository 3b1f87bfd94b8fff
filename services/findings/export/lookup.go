package export

import (
	"context"
	"fmt"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/token"
	"github.com/palisade/palisade/ent/user"
	"github.com/palisade/palisade/services/internal/store"
)

// actor is who changed a finding, as events have it.
type actor struct {
	kind string
	id   int64
}

// lookup finds the names of actors: e-mail addresses of users, and names of tokens.
type lookup struct{ db *ent.Client }

// actorsOf are the actors of events without a name.
func actorsOf(events []*ent.FindingEvent) (list []actor) {
	for _, e := range events {
		if e.ActorName == "" {
			list = append(list, actor{e.ActorKind, e.ActorID})
		}
	}
	return list
}

// names returns the names of the users and tokens that changed findings. Those that are gone have none.
func (l lookup) names(ctx context.Context, actors []actor) (map[actor]string, error) {
	ids := map[string][]int64{}
	names := map[actor]string{}
	for _, who := range actors {
		if _, seen := names[who]; !seen && (who.kind == "user" || who.kind == "token") {
			names[who] = ""
			ids[who.kind] = append(ids[who.kind], who.id)
		}
	}
	if list := ids["user"]; len(list) > 0 {
		// Users belong to no deployment; these changed findings of this one.
		rows, err := l.db.User.Query().Where(store.WithIDs[predicate.User](list)).Select(user.FieldID, user.FieldEmail).All(tenant.System(ctx))
		if err != nil {
			return nil, fmt.Errorf("read users: %w", err)
		}
		for _, u := range rows {
			names[actor{"user", u.ID}] = u.Email
		}
	}
	if list := ids["token"]; len(list) > 0 {
		rows, err := l.db.Token.Query().Where(store.WithIDs[predicate.Token](list)).Select(token.FieldID, token.FieldName).All(ctx)
		if err != nil {
			return nil, fmt.Errorf("read tokens: %w", err)
		}
		for _, t := range rows {
			names[actor{"token", t.ID}] = t.Name
		}
	}
	return names, nil
}
