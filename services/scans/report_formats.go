package scans

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/reportformat"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/formats"
)

const (
	auditReportFormat = "report_format"
	// maxMappings is the number of mappings of a deployment.
	maxMappings = 100
)

// ReportFormats is the service group "report formats".
type ReportFormats struct {
	scansv1.UnimplementedReportFormatsServiceServer
	store *store.Store
}

// NewReportFormats stores mappings in st.
func NewReportFormats(st *store.Store) *ReportFormats { return &ReportFormats{store: st} }

// ListReportFormats lists the formats of this version and the mappings.
func (s *ReportFormats) ListReportFormats(ctx context.Context, _ *scansv1.ListReportFormatsRequest) (*scansv1.ListReportFormatsResponse, error) {
	response := &scansv1.ListReportFormatsResponse{}
	for _, f := range formats.All {
		response.Formats = append(response.Formats, &scansv1.ReportFormat{Name: f.Name, Title: f.Title})
	}
	rows, err := s.store.Reader.ReportFormat.Query().Order(ent.Asc(reportformat.FieldName)).Limit(maxMappings).All(ctx)
	for _, row := range rows {
		response.Formats = append(response.Formats, convertReportFormat(row))
	}
	return response, err
}

// PutReportFormat stores a mapping after checking all of it.
func (s *ReportFormats) PutReportFormat(ctx context.Context, r *scansv1.PutReportFormatRequest) (*scansv1.PutReportFormatResponse, error) {
	mapping, err := formats.ParseMapping([]byte(r.GetMapping()))
	if err != nil {
		return nil, apierr.InvalidArgument("mapping", "mapping: %v", err)
	}
	response := &scansv1.PutReportFormatResponse{}
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.ReportFormat.Query().Where(reportformat.Name(mapping.Name)).Only(ctx)
		if err != nil && !ent.IsNotFound(err) {
			return err
		}
		if row == nil {
			return s.create(ctx, tx, mapping.Name, r.GetMapping(), response)
		}
		before := convertReportFormat(row)
		if row, err = row.Update().SetMapping(r.GetMapping()).SetUpdatedAt(store.Now()).Save(ctx); err != nil {
			return err
		}
		response.Format = convertReportFormat(row)
		audit.Change(ctx, auditReportFormat, row.ID, before, response.GetFormat())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

func (s *ReportFormats) create(ctx context.Context, tx *ent.Tx, name, mapping string, response *scansv1.PutReportFormatResponse) error {
	n, err := tx.ReportFormat.Query().Count(ctx)
	if err != nil {
		return err
	}
	if n >= maxMappings {
		return apierr.FailedPrecondition("a deployment may have %d mappings; delete one first", maxMappings)
	}
	now := store.Now()
	row, err := tx.ReportFormat.Create().SetName(name).SetMapping(mapping).SetCreatedAt(now).SetUpdatedAt(now).Save(ctx)
	if ent.IsConstraintError(err) {
		return apierr.Conflict("another request stored the mapping %s at the same time; try again", apierr.Quote(name))
	}
	if err != nil {
		return err
	}
	response.Format = convertReportFormat(row)
	audit.Change(ctx, auditReportFormat, row.ID, nil, response.GetFormat())
	return nil
}

// DeleteReportFormat deletes a mapping.
func (s *ReportFormats) DeleteReportFormat(ctx context.Context, r *scansv1.DeleteReportFormatRequest) (*scansv1.DeleteReportFormatResponse, error) {
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.ReportFormat.Query().Where(reportformat.Name(r.GetName())).Only(ctx)
		if ent.IsNotFound(err) {
			return apierr.NotFound("mapping %s not found", apierr.Quote(r.GetName()))
		}
		if err != nil {
			return err
		}
		audit.Change(ctx, auditReportFormat, row.ID, convertReportFormat(row), nil)
		return tx.ReportFormat.DeleteOneID(row.ID).Exec(ctx)
	})
	if err != nil {
		return nil, err
	}
	return &scansv1.DeleteReportFormatResponse{}, nil
}

func convertReportFormat(row *ent.ReportFormat) *scansv1.ReportFormat {
	out := &scansv1.ReportFormat{
		Name: row.Name, Title: row.Name, Mapping: row.Mapping,
		CreatedAt: timestamppb.New(store.Time(row.CreatedAt)), UpdatedAt: timestamppb.New(store.Time(row.UpdatedAt)),
	}
	if m, err := formats.ParseMapping([]byte(row.Mapping)); err == nil && m.Title != "" {
		out.Title = m.Title
	}
	return out
}

// mappings returns the formats that the mappings of the deployment describe. A mapping that this version refuses is an
// error, so that its reports are not taken for another format.
func mappings(ctx context.Context, db *ent.Client) ([]formats.Format, error) {
	rows, err := db.ReportFormat.Query().Order(ent.Asc(reportformat.FieldName)).Limit(maxMappings).All(ctx)
	if err != nil {
		return nil, err
	}
	var list []formats.Format
	for _, row := range rows {
		m, err := formats.ParseMapping([]byte(row.Mapping))
		if err != nil {
			return nil, fmt.Errorf("stored mapping %s: %w", row.Name, err)
		}
		list = append(list, m.Format())
	}
	return list, nil
}
