package findings

import (
	"context"
	"strings"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/savedview"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/issuefilter"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// auditSavedView is the object kind of saved views in the audit trail.
	auditSavedView = "saved_view"
	// maxSavedViews is how many views a scope has.
	maxSavedViews = 100
	// maxSavedView limits the size of a view in bytes: lists read a page of them.
	maxSavedView = 64 << 10
	// savedViewsLimit is the default size of a page.
	savedViewsLimit = 100
)

// SavedViews is the service group "saved views".
type SavedViews struct {
	findingsv1.UnimplementedSavedViewsServiceServer
	store *store.Store
}

// NewSavedViews serves saved views from the store.
func NewSavedViews(st *store.Store) *SavedViews { return &SavedViews{store: st} }

// ListSavedViews lists the views that the caller may read, by position and id.
func (s *SavedViews) ListSavedViews(ctx context.Context, r *findingsv1.ListSavedViewsRequest) (*findingsv1.ListSavedViewsResponse, error) {
	caller, err := viewCallerOf(ctx, s.store.Reader)
	if err != nil {
		return nil, err
	}
	filter := proto.CloneOf(r)
	filter.Cursor, filter.Limit = "", nil
	digest, err := page.DigestOf("saved views", filter)
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, err
	}
	where := []predicate.SavedView{caller.readable()}
	if r.GetScope() != "" {
		where = append(where, savedview.Scope(r.GetScope()))
	}
	if continued {
		where = append(where, func(sel *entsql.Selector) {
			sel.Where(entsql.CompositeGT([]string{sel.C(savedview.FieldPosition), sel.C(savedview.FieldID)}, key.Order, key.ID))
		})
	}
	limit := savedViewsLimit
	if r.Limit != nil {
		limit = int(r.GetLimit())
	}
	rows, err := s.store.Reader.SavedView.Query().Where(where...).Order(ent.Asc(savedview.FieldPosition, savedview.FieldID)).Limit(limit + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	out := &findingsv1.ListSavedViewsResponse{}
	if len(rows) > limit {
		rows = rows[:limit]
		out.Cursor = page.Encode(digest, page.Key{Order: int64(rows[limit-1].Position), ID: rows[limit-1].ID})
	}
	for _, row := range rows {
		view, err := caller.convert(row)
		if err != nil {
			return nil, err
		}
		out.Views = append(out.Views, view)
	}
	return out, nil
}

// GetSavedView returns one view.
func (s *SavedViews) GetSavedView(ctx context.Context, r *findingsv1.GetSavedViewRequest) (*findingsv1.GetSavedViewResponse, error) {
	caller, err := viewCallerOf(ctx, s.store.Reader)
	if err != nil {
		return nil, err
	}
	row, err := caller.find(ctx, s.store.Reader, r.GetViewId())
	if err != nil {
		return nil, err
	}
	view, err := caller.convert(row)
	return &findingsv1.GetSavedViewResponse{View: view}, err
}

// CreateSavedView creates a view.
func (s *SavedViews) CreateSavedView(ctx context.Context, r *findingsv1.CreateSavedViewRequest) (*findingsv1.CreateSavedViewResponse, error) {
	out := &findingsv1.CreateSavedViewResponse{}
	name, err := viewName(r.GetName())
	if err != nil {
		return nil, err
	}
	content, err := viewContent(ctx, r.GetView())
	if err != nil {
		return nil, err
	}
	err = s.change(ctx, func(ctx context.Context, tx *ent.Tx, caller *viewCaller) error {
		scope, owner, err := caller.place(ctx, tx, r)
		if err != nil {
			return err
		}
		n, err := tx.SavedView.Query().Where(savedview.Scope(scope), savedview.OwnerID(owner)).Count(ctx)
		if err != nil {
			return err
		}
		if n >= maxSavedViews {
			return apierr.FailedPrecondition("a scope has at most %d views: delete one first", maxSavedViews)
		}
		if err := checkFreeName(ctx, tx, scope, owner, name, 0); err != nil {
			return err
		}
		if r.GetIsDefault() {
			if err := clearDefault(ctx, tx, scope, owner); err != nil {
				return err
			}
		}
		now := store.Now()
		row, err := tx.SavedView.Create().SetDeploymentID(caller.deploymentID).SetScope(scope).SetOwnerID(owner).SetName(name).
			SetNameKey(strings.ToLower(name)).SetPosition(r.GetPosition()).SetIsDefault(r.GetIsDefault()).SetContent(content).
			SetCreatorID(caller.userID).SetCreatedAt(now).SetUpdatedAt(now).Save(ctx)
		if err != nil {
			return err
		}
		out.View, err = caller.convert(row)
		audit.Change(ctx, auditSavedView, row.ID, nil, out.GetView())
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// UpdateSavedView changes a view.
func (s *SavedViews) UpdateSavedView(ctx context.Context, r *findingsv1.UpdateSavedViewRequest) (*findingsv1.UpdateSavedViewResponse, error) {
	out := &findingsv1.UpdateSavedViewResponse{}
	err := s.change(ctx, func(ctx context.Context, tx *ent.Tx, caller *viewCaller) error {
		row, err := caller.findToChange(ctx, tx, r.GetViewId())
		if err != nil {
			return err
		}
		before, err := caller.convert(row)
		if err != nil {
			return err
		}
		if err := refuseAnotherPlace(before, r); err != nil {
			return err
		}
		update, err := viewUpdate(ctx, tx, row, r)
		if err != nil {
			return err
		}
		if row, err = update.SetUpdatedAt(max(store.Now(), row.UpdatedAt+1)).Save(ctx); err != nil {
			return err
		}
		out.View, err = caller.convert(row)
		audit.Change(ctx, auditSavedView, row.ID, before, out.GetView())
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// refuseAnotherPlace refuses to move a view. Clients may send back what they read.
func refuseAnotherPlace(view *findingsv1.SavedView, r *findingsv1.UpdateSavedViewRequest) error {
	if r.Scope != nil && r.GetScope() != view.GetScope() {
		return apierr.InvalidArgument("scope", "scope cannot change: it must be %q or left out, got %q; create another view instead", view.GetScope(), r.GetScope())
	}
	if r.TeamId != nil && r.GetTeamId() != view.GetTeamId() {
		return apierr.InvalidArgument("team_id", "team_id cannot change: it must be %d or left out, got %d; create another view instead", view.GetTeamId(), r.GetTeamId())
	}
	return nil
}

// viewUpdate builds the change that the request wants.
func viewUpdate(ctx context.Context, tx *ent.Tx, row *ent.SavedView, r *findingsv1.UpdateSavedViewRequest) (*ent.SavedViewUpdateOne, error) {
	update := row.Update()
	if r.Name != nil {
		name, err := viewName(r.GetName())
		if err != nil {
			return nil, err
		}
		if err := checkFreeName(ctx, tx, row.Scope, row.OwnerID, name, row.ID); err != nil {
			return nil, err
		}
		update.SetName(name).SetNameKey(strings.ToLower(name))
	}
	if r.Position != nil {
		update.SetPosition(r.GetPosition())
	}
	if r.IsDefault != nil {
		if r.GetIsDefault() && !row.IsDefault {
			if err := clearDefault(ctx, tx, row.Scope, row.OwnerID); err != nil {
				return nil, err
			}
		}
		update.SetIsDefault(r.GetIsDefault())
	}
	if r.GetView() != nil {
		content, err := viewContent(ctx, r.GetView())
		if err != nil {
			return nil, err
		}
		update.SetContent(content)
	}
	return update, nil
}

// DeleteSavedView deletes a view.
func (s *SavedViews) DeleteSavedView(ctx context.Context, r *findingsv1.DeleteSavedViewRequest) (*findingsv1.DeleteSavedViewResponse, error) {
	out := &findingsv1.DeleteSavedViewResponse{}
	err := s.change(ctx, func(ctx context.Context, tx *ent.Tx, caller *viewCaller) error {
		row, err := caller.findToChange(ctx, tx, r.GetViewId())
		if err != nil {
			return err
		}
		if out.View, err = caller.convert(row); err != nil {
			return err
		}
		audit.Change(ctx, auditSavedView, row.ID, out.GetView(), nil)
		return tx.SavedView.DeleteOneID(row.ID).Exec(ctx)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// viewName is the stored form of a name.
func viewName(given string) (string, error) {
	name := strings.Join(strings.Fields(given), " ")
	if name == "" {
		return "", apierr.InvalidArgument("name", "name must not be empty")
	}
	return name, nil
}

// viewContent is the stored form of what a view shows. The list of issues must accept its filter.
func viewContent(ctx context.Context, view *findingsv1.SavedViewContent) ([]byte, error) {
	if _, err := issuefilter.Compile(ctx, view.GetFilter(), time.Now()); err != nil {
		return nil, err
	}
	content, err := proto.Marshal(view)
	if err == nil && len(content) > maxSavedView {
		err = apierr.InvalidArgument("view", "view must have at most %d bytes, got %d: use fewer values in its filter", maxSavedView, len(content))
	}
	return append([]byte{}, content...), err // an empty view is not nil: the column is required
}

func checkFreeName(ctx context.Context, tx *ent.Tx, scope string, owner int64, name string, except int64) error {
	taken, err := tx.SavedView.Query().Where(savedview.Scope(scope), savedview.OwnerID(owner), savedview.NameKey(strings.ToLower(name)), savedview.IDNEQ(except)).Exist(ctx)
	if err == nil && taken {
		err = apierr.AlreadyExists("a view with the name %q exists in this scope", name)
	}
	return err
}

func clearDefault(ctx context.Context, tx *ent.Tx, scope string, owner int64) error {
	return tx.SavedView.Update().Where(savedview.Scope(scope), savedview.OwnerID(owner), savedview.IsDefault(true)).SetIsDefault(false).Exec(ctx)
}
