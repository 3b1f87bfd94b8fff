package scm

import (
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/reviewcommentcontent"
	"github.com/palisade/palisade/ent/tenant"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

// commentKind is the object kind of review comment content in the audit trail.
const commentKind = "review_comment_content"

// ReviewComments is the service group "review comment product content".
type ReviewComments struct {
	scmv1.UnimplementedReviewCommentProductContentServiceServer
	store *store.Store
}

// NewReviewComments serves the content of review comments from the store.
func NewReviewComments(st *store.Store) *ReviewComments { return &ReviewComments{store: st} }

// CreateReviewCommentProductContent adds text to the review comments of a product.
func (s *ReviewComments) CreateReviewCommentProductContent(ctx context.Context, r *scmv1.CreateReviewCommentProductContentRequest) (*scmv1.CreateReviewCommentProductContentResponse, error) {
	wanted := r.GetReviewCommentProductContent()
	if productType(wanted) == "" {
		return nil, apierr.InvalidArgument("reviewCommentProductContent.productContent.productType", "productType is required: one of %s",
			apierr.EnumWords(scmv1.Product(0).Descriptor()))
	}
	response := &scmv1.CreateReviewCommentProductContentResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		deploymentID, _ := tenant.FromContext(ctx)
		now := store.Now()
		row, err := tx.ReviewCommentContent.Create().SetDeploymentID(deploymentID).SetContentType(contentType(wanted)).
			SetProductType(productType(wanted)).SetContent(wanted.GetContent()).SetCreatedAt(now).SetUpdatedAt(now).Save(ctx)
		if err != nil {
			return contentTaken(err, wanted)
		}
		response.ReviewCommentProductContent = convertContent(row)
		audit.Change(ctx, commentKind, row.ID, nil, response.GetReviewCommentProductContent())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// ListReviewCommentProductContent lists all texts of the deployment: at most one per product.
func (s *ReviewComments) ListReviewCommentProductContent(ctx context.Context, _ *scmv1.ListReviewCommentProductContentRequest) (*scmv1.ListReviewCommentProductContentResponse, error) {
	rows, err := s.store.Reader.ReviewCommentContent.Query().Order(ent.Asc(reviewcommentcontent.FieldID)).All(ctx)
	if err != nil {
		return nil, err
	}
	response := &scmv1.ListReviewCommentProductContentResponse{}
	for _, row := range rows {
		response.ReviewCommentContents = append(response.ReviewCommentContents, convertContent(row))
	}
	return response, nil
}

// UpdateReviewCommentProductContent replaces a text (contract operation 8). A request without a product keeps the
// stored one.
func (s *ReviewComments) UpdateReviewCommentProductContent(ctx context.Context, r *scmv1.UpdateReviewCommentProductContentRequest) (*scmv1.UpdateReviewCommentProductContentResponse, error) {
	wanted := r.GetReviewCommentProductContent()
	response := &scmv1.UpdateReviewCommentProductContentResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		before, err := s.lock(ctx, tx, r.GetReviewCommentProductContentId())
		if err != nil {
			return err
		}
		update := before.Update().SetContentType(contentType(wanted)).SetContent(wanted.GetContent()).SetUpdatedAt(store.Now())
		if product := productType(wanted); product != "" {
			update.SetProductType(product)
		}
		after, err := update.Save(ctx)
		if err != nil {
			return contentTaken(err, wanted)
		}
		response.ReviewCommentProductContent = convertContent(after)
		audit.Change(ctx, commentKind, before.ID, convertContent(before), response.GetReviewCommentProductContent())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// DeleteReviewCommentProductContent deletes a text.
func (s *ReviewComments) DeleteReviewCommentProductContent(ctx context.Context, r *scmv1.DeleteReviewCommentProductContentRequest) (*scmv1.DeleteReviewCommentProductContentResponse, error) {
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := s.lock(ctx, tx, r.GetReviewCommentProductContentId())
		if err != nil {
			return err
		}
		audit.Change(ctx, commentKind, row.ID, convertContent(row), nil)
		return tx.ReviewCommentContent.DeleteOneID(row.ID).Exec(ctx)
	})
	if err != nil {
		return nil, err
	}
	return &scmv1.DeleteReviewCommentProductContentResponse{}, nil
}

// lock finds a text and locks it until the end of the transaction.
func (s *ReviewComments) lock(ctx context.Context, tx *ent.Tx, id int64) (*ent.ReviewCommentContent, error) {
	query := tx.ReviewCommentContent.Query().Where(reviewcommentcontent.ID(id))
	if s.store.Postgres() {
		query.ForUpdate()
	}
	row, err := query.Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("review comment product content %d not found", id)
	}
	return row, err
}

// contentTaken converts the violation of the index that allows one text per type and product.
func contentTaken(err error, wanted *scmv1.ReviewCommentContent) error {
	if ent.IsConstraintError(err) {
		return apierr.AlreadyExists("this deployment has a %s for %s already", contentType(wanted), productType(wanted))
	}
	return err
}

// contentType defaults to addendum, the only type.
func contentType(c *scmv1.ReviewCommentContent) string {
	if c.GetContentType() == scmv1.ReviewCommentContentType_REVIEW_COMMENT_CONTENT_TYPE_UNSPECIFIED {
		return scmv1.ReviewCommentContentType_REVIEW_COMMENT_CONTENT_TYPE_ADDENDUM.String()
	}
	return c.GetContentType().String()
}

// productType is empty for a text without a product.
func productType(c *scmv1.ReviewCommentContent) string {
	if product := c.GetProductContent().GetProductType(); product != scmv1.Product_PRODUCT_UNSPECIFIED {
		return product.String()
	}
	return ""
}

func convertContent(row *ent.ReviewCommentContent) *scmv1.ReviewCommentContent {
	return &scmv1.ReviewCommentContent{
		Id:             row.ID,
		ContentType:    scmv1.ReviewCommentContentType(scmv1.ReviewCommentContentType_value[row.ContentType]),
		Content:        row.Content,
		ProductContent: &scmv1.ProductContent{ProductType: scmv1.Product(scmv1.Product_value[row.ProductType])},
	}
}
