import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, ApiError, type Schemas, unwrap } from "@/api/client";
import { useDeployment } from "@/api/session";

export type Installation = Schemas["notifications.v1.GetChatAppInstallationResponse"];
export type Mapping = Schemas["notifications.v1.ChatAppNotificationMapping"];
export type Channel = Schemas["notifications.v1.ChatAppChannel"];

const maxPages = 20;

/** A rule that posts new findings to a channel. The types of the API want the switches, too. */
const newRule = (id: string, name: string): Schemas["notifications.v1.NotificationRuleInput"] => ({
  name: `Slack #${name}`,
  channel: "CHANNEL_SLACK_APP",
  config: { channel_id: id, channel_name: name },
  is_enabled: true,
  send_findings: true,
  send_freshness: false,
  send_held_closes: false,
  send_rule_alerts: false,
  send_scan_completion: false,
  use_network_broker: false,
});

/** useSlack has the Slack app of the organization, where it posts, and what can be done about both. */
export function useSlack() {
  const deploymentId = useDeployment().id ?? "";
  const queryClient = useQueryClient();
  const params = { path: { deploymentId } };
  const key = ["slack", deploymentId];
  const refresh = () => queryClient.invalidateQueries({ queryKey: key });
  /** The installation, or why there is none. */
  const installation = useQuery({
    queryKey: [...key, "installation"],
    queryFn: async (): Promise<{ installed?: Installation; missing?: string }> => {
      try {
        return { installed: await unwrap(api.GET("/api/agent/deployments/{deploymentId}/chat-app/installations", { params })) };
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return { missing: error.message };
        throw error;
      }
    },
  });
  const mappings = useQuery({
    queryKey: [...key, "mappings"],
    queryFn: async () => (await unwrap(api.GET("/api/agent/deployments/{deploymentId}/chat-app/channels", { params }))).notification_mappings,
  });
  const install = useMutation({
    mutationFn: () => unwrap(api.GET("/api/agent/deployments/{deploymentId}/chat-app/install", { params })),
    onSuccess: ({ redirect_url }) => window.location.assign(redirect_url),
  });
  const uninstall = useMutation({
    mutationFn: () => unwrap(api.DELETE("/api/agent/deployments/{deploymentId}/chat-app/installations", { params })),
    onSettled: refresh,
  });
  const add = useMutation({
    mutationFn: ({ id, name }: Channel) =>
      unwrap(
        api.POST("/api/agent/deployments/{deploymentId}/actions", {
          params,
          body: { notificationRule: newRule(id, name) },
        }),
      ),
    onSettled: refresh,
  });
  const rule = (id: string) => ({ path: { deploymentId, notificationRuleId: id } });
  const remove = useMutation({
    mutationFn: (id: string) => unwrap(api.DELETE("/api/agent/deployments/{deploymentId}/actions/{notificationRuleId}", { params: rule(id) })),
    onSettled: refresh,
  });
  const test = useMutation({
    mutationFn: (id: string) =>
      unwrap(api.POST("/api/agent/deployments/{deploymentId}/actions/{notificationRuleId}/test", { params: rule(id), body: {} })),
  });
  return { installation, mappings, install, uninstall, add, remove, test };
}

/** useChannels lists the channels of the workspace, while they are wanted. */
export function useChannels(enabled: boolean) {
  const deploymentId = useDeployment().id ?? "";
  return useQuery({
    queryKey: ["slack-channels", deploymentId],
    enabled,
    staleTime: 60_000,
    queryFn: async () => {
      const all: Channel[] = [];
      let cursor = "";
      for (let page = 0; page < maxPages; page++) {
        const answer = await unwrap(
          api.GET("/api/agent/deployments/{deploymentId}/chat-app/available_channels", { params: { path: { deploymentId }, query: { cursor, limit: 1000 } } }),
        );
        all.push(...answer.channels);
        cursor = answer.cursor;
        if (!cursor) break;
      }
      return all.sort((a, b) => a.name.localeCompare(b.name));
    },
  });
}
