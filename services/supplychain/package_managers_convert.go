package supplychain

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/packagemanagerconfig"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/supplychain/registry"
)

// shownColumns are all columns except the credentials.
var shownColumns = func() (columns []string) {
	for _, column := range packagemanagerconfig.Columns {
		if column != packagemanagerconfig.FieldCredentials {
			columns = append(columns, column)
		}
	}
	return columns
}()

// withDefaults adds defaults to a create request, without the fields that the server sets.
func withDefaults(given *supplychainv1.PackageManagerConfigInput) *supplychainv1.PackageManagerConfig {
	base := &supplychainv1.PackageManagerConfig{RegistryType: packageManagerAuth, Ecosystem: registry.NoEcosystem}
	return merge(base, given)
}

// merge returns a copy of base with the given fields.
func merge(base *supplychainv1.PackageManagerConfig, given *supplychainv1.PackageManagerConfigInput) *supplychainv1.PackageManagerConfig {
	out := proto.CloneOf(base)
	if given == nil {
		return out
	}
	set(&out.Name, given.Name)
	set(&out.Url, given.Url)
	set(&out.RequiresAuth, given.RequiresAuth)
	set(&out.UseNetworkBroker, given.UseNetworkBroker)
	if given.GetRegistryType() != 0 && given.GetRegistryType() != out.GetRegistryType() {
		// The stored ecosystem is valid only for the previous type: a firewall has none, a package registry has one.
		out.RegistryType, out.Ecosystem = given.GetRegistryType(), ""
		if out.GetRegistryType() == packageManagerAuth {
			out.Ecosystem = registry.NoEcosystem
		}
	}
	set(&out.Ecosystem, given.Ecosystem)
	switch {
	case given.GetAdditionalConfig() != nil:
		out.AdditionalConfig = proto.CloneOf(given.GetAdditionalConfig())
	case out.GetEcosystem() != base.GetEcosystem():
		out.AdditionalConfig = nil
	}
	return out
}

// set sets a field if a value is given.
func set[T any](field, given *T) {
	if given != nil {
		*field = *given
	}
}

// assign writes a validated configuration to a row to be created or changed.
func assign(row *ent.PackageManagerConfigMutation, config *supplychainv1.PackageManagerConfig, kind registry.Kind, now int64) error {
	row.SetName(config.GetName())
	row.SetURL(config.GetUrl())
	row.SetRequiresAuth(config.GetRequiresAuth())
	row.SetEcosystem(config.GetEcosystem())
	row.SetUseNetworkBroker(config.GetUseNetworkBroker())
	row.SetRegistryType(config.GetRegistryType().String())
	row.SetCredentialKind(columnWords[kind])
	row.SetUpdatedAt(now)
	if proto.Size(config.GetAdditionalConfig()) == 0 {
		row.ClearAdditionalConfig()
		return nil
	}
	additional, err := proto.Marshal(config.GetAdditionalConfig())
	if err == nil {
		row.SetAdditionalConfig(additional)
	}
	return err
}

// columnWords maps kinds of credentials to values of the column credential_kind.
var columnWords = map[registry.Kind]string{
	registry.None: "", registry.Maven: "maven", registry.PyPI: "pypi", registry.CodeArtifact: "code_artifact", registry.NPM: "npm",
}

// kindOf returns the kind of a row's credentials.
func kindOf(row *ent.PackageManagerConfig) registry.Kind {
	for kind, word := range columnWords {
		if word == row.CredentialKind {
			return kind
		}
	}
	return registry.None
}

// convert converts a row to the API's form.
func convert(row *ent.PackageManagerConfig) (*supplychainv1.PackageManagerConfig, error) {
	out := &supplychainv1.PackageManagerConfig{
		Id: row.ID, DeploymentId: row.DeploymentID, Name: row.Name, Url: row.URL, RequiresAuth: row.RequiresAuth,
		Ecosystem: row.Ecosystem, UseNetworkBroker: row.UseNetworkBroker,
		RegistryType: supplychainv1.RegistryType(supplychainv1.RegistryType_value[row.RegistryType]),
	}
	if row.AdditionalConfig != nil {
		out.AdditionalConfig = &supplychainv1.AdditionalConfig{}
		if err := proto.Unmarshal(row.AdditionalConfig, out.GetAdditionalConfig()); err != nil {
			return nil, fmt.Errorf("additional_config of package manager config %d: %w", row.ID, err)
		}
	}
	return out, nil
}
