package scans

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/managedscansetting"
	"github.com/palisade/palisade/ent/project"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	minFailOpen = time.Minute
	maxFailOpen = 24 * time.Hour
)

// ManagedScanSettings is the service group "managed scan settings".
type ManagedScanSettings struct {
	scansv1.UnimplementedManagedScanSettingsServiceServer
	store *store.Store
}

// NewManagedScanSettings serves the settings from the store.
func NewManagedScanSettings(st *store.Store) *ManagedScanSettings {
	return &ManagedScanSettings{store: st}
}

// CreateManagedScanSettings creates the settings of the deployment.
func (s *ManagedScanSettings) CreateManagedScanSettings(
	ctx context.Context, r *scansv1.CreateManagedScanSettingsRequest,
) (*scansv1.CreateManagedScanSettingsResponse, error) {
	wanted := r.GetManagedScanSettings()
	seconds, err := checkManagedSettings(wanted, r.GetDeploymentId(), 0)
	if err != nil {
		return nil, err
	}
	var row *ent.ManagedScanSetting
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
		row, err = tx.ManagedScanSetting.Create().SetDeploymentID(r.GetDeploymentId()).SetFailOpen(wanted.GetFailOpen()).
			SetFailOpenSeconds(seconds).SetUpdatedAt(store.Now()).Save(ctx)
		if err == nil {
			audit.Change(ctx, "managed scan settings", row.ID, nil, convertManagedSettings(row))
		}
		return err
	})
	if ent.IsConstraintError(err) {
		return nil, apierr.AlreadyExists("the deployment has managed scan settings already: update or delete them")
	}
	if err != nil {
		return nil, err
	}
	return &scansv1.CreateManagedScanSettingsResponse{ManagedScanSettings: convertManagedSettings(row)}, nil
}

// GetManagedScanSettings returns the settings of the deployment.
func (s *ManagedScanSettings) GetManagedScanSettings(
	ctx context.Context, _ *scansv1.GetManagedScanSettingsRequest,
) (*scansv1.GetManagedScanSettingsResponse, error) {
	row, err := s.store.Reader.ManagedScanSetting.Query().Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("the deployment has no managed scan settings: create some")
	}
	if err != nil {
		return nil, err
	}
	return &scansv1.GetManagedScanSettingsResponse{ManagedScanSettings: convertManagedSettings(row)}, nil
}

// UpdateManagedScanSettings replaces the settings.
func (s *ManagedScanSettings) UpdateManagedScanSettings(
	ctx context.Context, r *scansv1.UpdateManagedScanSettingsRequest,
) (*scansv1.UpdateManagedScanSettingsResponse, error) {
	wanted := r.GetManagedScanSettings()
	seconds, err := checkManagedSettings(wanted, r.GetDeploymentId(), r.GetManagedScanSettingsId())
	if err != nil {
		return nil, err
	}
	var after *ent.ManagedScanSetting
	err = s.change(ctx, r.GetManagedScanSettingsId(), func(ctx context.Context, _ *ent.Tx, before *ent.ManagedScanSetting) (err error) {
		after, err = before.Update().SetFailOpen(wanted.GetFailOpen()).SetFailOpenSeconds(seconds).SetUpdatedAt(store.Now()).Save(ctx)
		if err == nil {
			audit.Change(ctx, "managed scan settings", after.ID, convertManagedSettings(before), convertManagedSettings(after))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &scansv1.UpdateManagedScanSettingsResponse{ManagedScanSettings: convertManagedSettings(after)}, nil
}

// DeleteManagedScanSettings deletes the settings.
func (s *ManagedScanSettings) DeleteManagedScanSettings(
	ctx context.Context, r *scansv1.DeleteManagedScanSettingsRequest,
) (*scansv1.DeleteManagedScanSettingsResponse, error) {
	return &scansv1.DeleteManagedScanSettingsResponse{}, s.change(ctx, r.GetManagedScanSettingsId(), func(ctx context.Context, tx *ent.Tx, row *ent.ManagedScanSetting) error {
		audit.Change(ctx, "managed scan settings", row.ID, convertManagedSettings(row), nil)
		return tx.ManagedScanSetting.DeleteOneID(row.ID).Exec(ctx)
	})
}

// change runs do on the settings with an id.
func (s *ManagedScanSettings) change(ctx context.Context, id int64, do func(context.Context, *ent.Tx, *ent.ManagedScanSetting) error) error {
	return s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		query := tx.ManagedScanSetting.Query().Where(managedscansetting.ID(id))
		if s.store.Postgres() {
			query.ForUpdate()
		}
		row, err := query.Only(ctx)
		if ent.IsNotFound(err) {
			return apierr.NotFound("managed scan settings %d not found", id)
		}
		if err != nil {
			return err
		}
		return do(ctx, tx, row)
	})
}

// checkManagedSettings returns the seconds of new settings. Ids in them have to be as in the request, or absent.
func checkManagedSettings(of *scansv1.ManagedScanSettings, deploymentID, id int64) (int64, error) {
	if got := of.GetId(); got != 0 && got != id {
		return 0, apierr.InvalidArgument("managed_scan_settings.id", "id must be absent, or as in the path; got %d", got)
	}
	if got := of.GetDeploymentId(); got != 0 && got != deploymentID {
		return 0, apierr.InvalidArgument("managed_scan_settings.deployment_id", "deployment_id must be absent, or as in the path; got %d", got)
	}
	return failOpenSeconds(of)
}

// failOpenSeconds reads fail_open_timeout; 0 if there is none.
func failOpenSeconds(of *scansv1.ManagedScanSettings) (int64, error) {
	given := of.GetFailOpenTimeout()
	if given == "" {
		return 0, nil
	}
	number, seconds := strings.CutSuffix(given, "s")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || !seconds || n < int64(minFailOpen.Seconds()) || n > int64(maxFailOpen.Seconds()) {
		return 0, apierr.InvalidArgument("managed_scan_settings.fail_open_timeout",
			"fail_open_timeout must be seconds with an s, from %.0fs to %.0fs, or empty; got %s", minFailOpen.Seconds(), maxFailOpen.Seconds(), apierr.Quote(given))
	}
	return n, nil
}

func convertManagedSettings(row *ent.ManagedScanSetting) *scansv1.ManagedScanSettings {
	out := &scansv1.ManagedScanSettings{Id: row.ID, DeploymentId: row.DeploymentID, FailOpen: row.FailOpen}
	if row.FailOpenSeconds != 0 {
		out.FailOpenTimeout = strconv.FormatInt(row.FailOpenSeconds, 10) + "s"
	}
	return out
}

// ProjectManagedScanSettings is the service group "project managed scan settings".
type ProjectManagedScanSettings struct {
	scansv1.UnimplementedProjectManagedScanSettingsServiceServer
	store *store.Store
}

// NewProjectManagedScanSettings serves the settings of projects from the store.
func NewProjectManagedScanSettings(st *store.Store) *ProjectManagedScanSettings {
	return &ProjectManagedScanSettings{store: st}
}

// GetProjectManagedScanSettings returns which managed scans a project has.
func (s *ProjectManagedScanSettings) GetProjectManagedScanSettings(
	ctx context.Context, r *scansv1.GetProjectManagedScanSettingsRequest,
) (*scansv1.GetProjectManagedScanSettingsResponse, error) {
	row, err := s.store.Reader.Project.Query().Where(project.ID(r.GetProjectId())).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("project %d not found", r.GetProjectId())
	}
	if err != nil {
		return nil, err
	}
	return &scansv1.GetProjectManagedScanSettingsResponse{ProjectManagedScanSettings: projectSettings(row)}, nil
}

// BulkGetProjectManagedScanSettings returns which managed scans many projects have, by id.
func (s *ProjectManagedScanSettings) BulkGetProjectManagedScanSettings(
	ctx context.Context, r *scansv1.BulkGetProjectManagedScanSettingsRequest,
) (*scansv1.BulkGetProjectManagedScanSettingsResponse, error) {
	ids := make([]int64, 0, len(r.GetProjectIds()))
	for _, text := range r.GetProjectIds() {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, apierr.InvalidArgument("project_ids", "project_ids must be ids of projects; got %s", apierr.Quote(text))
		}
		ids = append(ids, id)
	}
	rows, err := s.store.Reader.Project.Query().Where(store.OneOf(project.FieldID, ids)).Order(ent.Asc(project.FieldID)).
		Select(project.FieldID, project.FieldManagedDiffScan, project.FieldManagedFullScan).All(ctx)
	if err != nil {
		return nil, err
	}
	out := &scansv1.BulkGetProjectManagedScanSettingsResponse{}
	for _, row := range rows {
		out.SettingsByProject = append(out.SettingsByProject, &scansv1.ProjectSettingsItem{ProjectId: row.ID, ProjectManagedScanSettings: projectSettings(row)})
	}
	return out, nil
}

func projectSettings(row *ent.Project) *scansv1.ProjectManagedScanSettings {
	return &scansv1.ProjectManagedScanSettings{
		DiffScan: &scansv1.ManagedScanSwitch{Enabled: row.ManagedDiffScan}, FullScan: &scansv1.ManagedScanSwitch{Enabled: row.ManagedFullScan},
	}
}
