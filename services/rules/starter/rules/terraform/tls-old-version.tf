resource "azurerm_storage_account" "shop" {
  # ruleid: palisade.terraform.tls-old-version
  min_tls_version = "TLS1_0"
}

resource "aws_lb_listener" "web" {
  # ruleid: palisade.terraform.tls-old-version
  ssl_policy = "ELBSecurityPolicy-2016-08"
}

resource "azurerm_storage_account" "current" {
  # ok: palisade.terraform.tls-old-version
  min_tls_version = "TLS1_2"
}

resource "aws_lb_listener" "current" {
  # ok: palisade.terraform.tls-old-version
  ssl_policy = "ELBSecurityPolicy-TLS13-1-2-2021-06"
  # ok: palisade.terraform.tls-old-version
  name = "TLS1_0"
}
