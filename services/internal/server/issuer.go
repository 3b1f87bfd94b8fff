package server

import (
	"context"
	"fmt"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/setting"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/store"
)

// settingIssuer names the row of the store that holds the iss claim of user tokens.
const settingIssuer = "issuer_url"

// IssuerURL is the iss claim of user tokens: the configured public URL, else the value in the store. All nodes and the
// jwt command must agree on it, and their listening addresses may differ.
func IssuerURL(ctx context.Context, st *store.Store, cfg config.Config) (string, error) {
	if cfg.PublicURL != "" {
		return cfg.BaseURL(), nil
	}
	row, err := st.Reader.Setting.Query().Where(setting.Name(settingIssuer)).Only(tenant.System(ctx))
	switch {
	case ent.IsNotFound(err):
		return cfg.BaseURL(), nil
	case err != nil:
		return "", fmt.Errorf("read the issuer of user tokens: %w", err)
	}
	return string(row.Value), nil
}

// rememberIssuer stores the iss claim, unless it is stored already: a node then starts on a full disk. When several
// nodes start at once on an empty store, one writes it and the others read its value.
func rememberIssuer(ctx context.Context, st *store.Store, cfg config.Config) (string, error) {
	url, err := IssuerURL(ctx, st, cfg)
	if err != nil {
		return "", err
	}
	same, err := st.Reader.Setting.Query().Where(setting.Name(settingIssuer), setting.Value([]byte(url))).Exist(tenant.System(ctx))
	if err != nil {
		return "", fmt.Errorf("read the issuer of user tokens: %w", err)
	}
	if same {
		return url, nil
	}
	err = st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		create := tx.Setting.Create().SetName(settingIssuer).SetValue([]byte(url)).OnConflictColumns(setting.FieldName)
		if cfg.PublicURL != "" {
			return create.UpdateValue().Exec(ctx)
		}
		return create.Ignore().Exec(ctx)
	})
	if err != nil {
		return "", fmt.Errorf("store the issuer of user tokens: %w", err)
	}
	return IssuerURL(ctx, st, cfg)
}
