package platform

import (
	"context"
	"encoding/json"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/surveyresponse"
	"github.com/palisade/palisade/ent/tenant"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// maxSurveys is how many surveys a user may respond to in a deployment.
	maxSurveys = 100
	// maxSurveyData is in bytes of JSON.
	maxSurveyData = 64 << 10
	// maxSurveyDepth is how deep objects and lists may be; the outermost is at 1.
	maxSurveyDepth = 16

	auditSurvey = "survey_response"
)

// Surveys is the service group "surveys".
type Surveys struct {
	platformv1.UnimplementedSurveysServiceServer
	store *store.Store
}

// NewSurveys serves responses from the store.
func NewSurveys(st *store.Store) *Surveys { return &Surveys{store: st} }

// GetSurveyResponse returns the newest response of the caller's deployment.
func (s *Surveys) GetSurveyResponse(ctx context.Context, r *platformv1.GetSurveyResponseRequest) (*platformv1.GetSurveyResponseResponse, error) {
	ctx, err := enterCompany(ctx, r.GetDeploymentSlug())
	if err != nil {
		return nil, err
	}
	row, err := s.store.Reader.SurveyResponse.Query().Where(surveyresponse.Survey(r.GetSurveyName())).
		Order(ent.Desc(surveyresponse.FieldSubmittedAt, surveyresponse.FieldID)).First(ctx)
	if ent.IsNotFound(err) {
		return &platformv1.GetSurveyResponseResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	response, err := showSurvey(row)
	return &platformv1.GetSurveyResponseResponse{Response: response}, err
}

// CreateSurveyResponse stores the caller's response in place of an earlier one.
func (s *Surveys) CreateSurveyResponse(ctx context.Context, r *platformv1.CreateSurveyResponseRequest) (*platformv1.CreateSurveyResponseResponse, error) {
	ctx, err := enterCompany(ctx, r.GetDeploymentSlug())
	if err != nil {
		return nil, err
	}
	data, err := surveyData(r.GetData())
	if err != nil {
		return nil, err
	}
	caller, _ := access.FromContext(ctx)
	out := &platformv1.CreateSurveyResponseResponse{}
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if _, err := s.store.LockDeployment(ctx, tx); err != nil {
			return err
		}
		row, err := tx.SurveyResponse.Query().Where(surveyresponse.UserID(caller.UserID), surveyresponse.Survey(r.GetSurveyName())).Only(ctx)
		var before *platformv1.SurveyResponse
		switch {
		case ent.IsNotFound(err):
			row, err = create(ctx, tx, caller.UserID, r.GetSurveyName(), data)
		case err == nil:
			if before, err = showSurvey(row); err == nil {
				row, err = row.Update().SetData(data).SetSubmittedAt(store.Now()).Save(ctx)
			}
		}
		if err != nil {
			return err
		}
		if out.Response, err = showSurvey(row); err != nil {
			return err
		}
		if before == nil {
			audit.Change(ctx, auditSurvey, row.ID, nil, out.GetResponse())
		} else {
			audit.Change(ctx, auditSurvey, row.ID, before, out.GetResponse())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// create stores the first response of a user to a survey.
func create(ctx context.Context, tx *ent.Tx, userID int64, survey string, data []byte) (*ent.SurveyResponse, error) {
	n, err := tx.SurveyResponse.Query().Where(surveyresponse.UserID(userID)).Count(ctx)
	if err != nil {
		return nil, err
	}
	if n >= maxSurveys {
		return nil, apierr.FailedPrecondition("a user may respond to at most %d surveys", maxSurveys)
	}
	return tx.SurveyResponse.Create().SetSurvey(survey).SetUserID(userID).SetData(data).SetSubmittedAt(store.Now()).Save(ctx)
}

// enterCompany limits the context to the deployment that a request outside a deployment means: the named one, or the
// caller's only one.
func enterCompany(ctx context.Context, slug string) (context.Context, error) {
	caller, ok := access.FromContext(ctx)
	if slug == "" && ok && len(caller.Grants) == 0 {
		return nil, apierr.FailedPrecondition("surveys are for members of a deployment: this user belongs to none")
	}
	grant, err := access.OnlyGrant(caller)
	if slug != "" {
		grant, err = access.ResolveGrant(caller, slug, 0, false)
	}
	if err != nil {
		return nil, err
	}
	return tenant.NewContext(ctx, grant.DeploymentID), nil
}

// surveyData is the JSON of a response.
func surveyData(data *structpb.Struct) ([]byte, error) {
	if depthOf(structpb.NewStructValue(data), maxSurveyDepth) > maxSurveyDepth {
		return nil, apierr.InvalidArgument("data", "data must have objects and lists at most %d deep", maxSurveyDepth)
	}
	encoded, err := json.Marshal(data.AsMap())
	if err != nil {
		return nil, apierr.InvalidArgument("data", "data must be a JSON object: %v", err)
	}
	if len(encoded) > maxSurveyData {
		return nil, apierr.InvalidArgument("data", "data must have at most %d bytes as JSON, got %d", maxSurveyData, len(encoded))
	}
	return encoded, nil
}

// depthOf returns how deep objects and lists are. It looks no deeper than most+1.
func depthOf(v *structpb.Value, most int) int {
	var inner []*structpb.Value
	switch kind := v.GetKind().(type) {
	case *structpb.Value_StructValue:
		for _, field := range kind.StructValue.GetFields() {
			inner = append(inner, field)
		}
	case *structpb.Value_ListValue:
		inner = kind.ListValue.GetValues()
	default:
		return 0
	}
	deepest := 0
	for _, one := range inner {
		if most >= 0 {
			deepest = max(deepest, depthOf(one, most-1))
		}
	}
	return deepest + 1
}

func showSurvey(row *ent.SurveyResponse) (*platformv1.SurveyResponse, error) {
	data := &structpb.Struct{}
	if err := data.UnmarshalJSON(row.Data); err != nil {
		return nil, err
	}
	return &platformv1.SurveyResponse{
		Id: row.ID, SurveyName: row.Survey, UserId: row.UserID, Data: data, SubmittedAt: timestamppb.New(store.Time(row.SubmittedAt)),
	}, nil
}
