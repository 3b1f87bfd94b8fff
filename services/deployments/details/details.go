// Package details shows a row of deployments as the API does. It asks no database, so that every domain may use it.
package details

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
)

// sourceType says that a deployment was made on this server, not taken over from elsewhere.
const sourceType = "simple"

// Of returns the deployment as operations on deployments, on their users and of users show it. The error is that of a
// row whose configuration of the products cannot be read.
func Of(row *ent.Deployment) (*deploymentsv1.DeploymentDetails, error) {
	products, err := Products(row)
	if err != nil {
		return nil, err
	}
	return &deploymentsv1.DeploymentDetails{
		Id: row.ID, Name: row.Name, DisplayName: row.Name, Slug: row.Slug, SourceType: sourceType, OrganizationId: row.ID,
		Features: &deploymentsv1.DeploymentFeatures{
			HasAutofix: products.GetSast().GetHumanAutofixEnabled(), HasDeepsemgrep: row.CrossFileAnalysis,
			HasTriageViaComment: row.TriageViaComment, HasDependencyQuery: row.DependencyQuery, DefaultUserRole: Role(row.DefaultRole),
		},
	}, nil
}

// Record returns the deployment in its older form. scmName is the organization or group at the source-code host.
func Record(row *ent.Deployment, scmName string) (*deploymentsv1.DeploymentRecord, error) {
	d, err := Of(row)
	if err != nil {
		return nil, err
	}
	f := d.GetFeatures()
	return &deploymentsv1.DeploymentRecord{
		Id: d.GetId(), Name: d.GetName(), DisplayName: d.GetDisplayName(), Slug: d.GetSlug(), SourceType: d.GetSourceType(),
		HasAutofix: f.GetHasAutofix(), HasDeepsemgrep: f.GetHasDeepsemgrep(), HasTriageViaComment: f.GetHasTriageViaComment(),
		HasDependencyQuery: f.GetHasDependencyQuery(), DefaultUserRole: row.DefaultRole, OrganizationId: d.GetOrganizationId(),
		ScmName: scmName,
	}, nil
}

// Role reads a role as tables hold it.
func Role(word string) deploymentsv1.OrgRole {
	return deploymentsv1.OrgRole(deploymentsv1.OrgRole_value[word])
}

// Stored returns the configuration of the products of a deployment as it was set: a product that was not is absent.
func Stored(row *ent.Deployment) (*deploymentsv1.DeploymentProductConfig, error) {
	config := &deploymentsv1.DeploymentProductConfig{}
	if err := proto.Unmarshal(row.Products, config); err != nil {
		return nil, fmt.Errorf("product configuration of deployment %d: %w", row.ID, err)
	}
	return config, nil
}

// Products returns the configuration of the products of a deployment, the defaults where none was set.
func Products(row *ent.Deployment) (*deploymentsv1.DeploymentProductConfig, error) {
	config, err := Stored(row)
	if err != nil {
		return nil, err
	}
	Complete(config)
	return config, nil
}

// Complete fills what a configuration leaves out: for a product that is absent the defaults, which turn on what the
// server does when it is asked to, and nothing that stops anybody; inside a product, what is absent is off. AI is on by
// default: the server knows no model until its operator names one.
func Complete(c *deploymentsv1.DeploymentProductConfig) {
	if c.Ai == nil {
		c.Ai = &deploymentsv1.AiProductConfig{Enabled: true}
	}
	if c.Sast == nil {
		c.Sast = &deploymentsv1.SastProductConfig{
			Enabled: true, HumanAutofixEnabled: true,
			AiAutofix: &deploymentsv1.AiAutofixConfig{Enabled: true}, AiAutotriage: &deploymentsv1.AiAutotriageConfig{Enabled: true},
		}
	}
	if c.Sca == nil {
		c.Sca = &deploymentsv1.ScaProductConfig{Enabled: true, PrCommentsEnabled: true, MaliciousDependencyAdvisoriesEnabled: true}
	}
	if c.Secrets == nil {
		c.Secrets = &deploymentsv1.SecretsProductConfig{Enabled: true}
	}
	sast, secrets := c.GetSast(), c.GetSecrets()
	sast.AiAutofix = orEmpty(sast.GetAiAutofix())
	sast.AiAutotriage = orEmpty(sast.GetAiAutotriage())
	sast.AiDetection = orEmpty(sast.GetAiDetection())
	secrets.GlobalValidationStatePolicy = orEmpty(secrets.GetGlobalValidationStatePolicy())
	secrets.HistoricalScan = orEmpty(secrets.GetHistoricalScan())
	secrets.GenericSecrets = orEmpty(secrets.GetGenericSecrets())
	for _, permission := range []*deploymentsv1.TriagePermission{&sast.TriagePermission, &c.Sca.TriagePermission, &secrets.TriagePermission} {
		if *permission == deploymentsv1.TriagePermission_TRIAGE_PERMISSION_UNSPECIFIED {
			*permission = deploymentsv1.TriagePermission_TRIAGE_PERMISSION_IGNORE
		}
	}
}

func orEmpty[T any](message *T) *T {
	if message == nil {
		return new(T)
	}
	return message
}
