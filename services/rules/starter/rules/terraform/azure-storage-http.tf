resource "azurerm_storage_account" "shop" {
  # ruleid: palisade.terraform.azure-storage-http
  https_traffic_only_enabled = false
}

resource "azurerm_storage_account" "guarded" {
  # ok: palisade.terraform.azure-storage-http
  https_traffic_only_enabled = true
}

resource "azurerm_storage_account" "default" {
  # ok: palisade.terraform.azure-storage-http
  account_tier = "Standard"
  # ok: palisade.terraform.azure-storage-http
  public_network_access_enabled = false
}
