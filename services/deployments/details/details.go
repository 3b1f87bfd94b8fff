// Package details converts deployment rows to the API's form. It does not use the database, so that all domains may
// import it.
package details

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
)

// sourceType: the deployment was created on this server and not imported.
const sourceType = "simple"

// Of returns the deployment in the form of operations on deployments and users. It returns an error if the stored
// product configuration cannot be decoded.
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

// Role converts a stored role.
func Role(word string) deploymentsv1.OrgRole {
	return deploymentsv1.OrgRole(deploymentsv1.OrgRole_value[word])
}

// Stored returns a deployment's stored product configuration: products that were not set are absent.
func Stored(row *ent.Deployment) (*deploymentsv1.DeploymentProductConfig, error) {
	config := &deploymentsv1.DeploymentProductConfig{}
	if err := proto.Unmarshal(row.Products, config); err != nil {
		return nil, fmt.Errorf("product configuration of deployment %d: %w", row.ID, err)
	}
	return config, nil
}

// Products returns a deployment's product configuration with defaults.
func Products(row *ent.Deployment) (*deploymentsv1.DeploymentProductConfig, error) {
	config, err := Stored(row)
	if err != nil {
		return nil, err
	}
	Complete(config)
	return config, nil
}

// Complete adds defaults to a configuration. An absent product gets the defaults, which enable features that run on
// request and nothing that blocks people. Inside a present product, absent means off. AI is on by default: the server
// has no model until its operator configures one.
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
