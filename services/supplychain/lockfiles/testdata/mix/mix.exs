defmodule Shop.MixProject do
  defp deps do
    [
      {:phoenix, "~> 1.7"},
      {:jason, "~> 1.2"},
      {:tool, git: "https://github.com/acme/tool.git"}
    ]
  end
end
