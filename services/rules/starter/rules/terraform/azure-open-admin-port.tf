resource "azurerm_network_security_rule" "ssh" {
  direction             = "Inbound"
  access                = "Allow"
  protocol              = "Tcp"
  source_address_prefix = "*"
  # ruleid: palisade.terraform.azure-open-admin-port
  destination_port_range = "22"
}

resource "azurerm_network_security_rule" "web" {
  direction             = "Inbound"
  access                = "Allow"
  protocol              = "Tcp"
  source_address_prefix = "*"
  # ok: palisade.terraform.azure-open-admin-port
  destination_port_range = "443"
}

resource "azurerm_network_security_rule" "refused" {
  direction             = "Inbound"
  access                = "Deny"
  protocol              = "Tcp"
  source_address_prefix = "*"
  # ok: palisade.terraform.azure-open-admin-port
  destination_port_range = "22"
  # ok: palisade.terraform.azure-open-admin-port
  description = "port 22 is closed"
}

resource "azurerm_network_security_rule" "range" {
  direction             = "Inbound"
  access                = "Allow"
  protocol              = "Tcp"
  source_address_prefix = "*"
  # ruleid: palisade.terraform.azure-open-admin-port
  destination_port_range = "20-25"
}

resource "azurerm_network_security_rule" "other_range" {
  direction             = "Inbound"
  access                = "Allow"
  protocol              = "Tcp"
  source_address_prefix = "*"
  # ok: palisade.terraform.azure-open-admin-port
  destination_port_range = "8000-8999"
}
