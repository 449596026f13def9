// The state that the page and the agent share: the agent's patches show as they come.

import { useAgent, UseAgentUpdate } from "@copilotkit/react-core/v2";

import { AGENT } from "./address";

export function SharedState() {
  const { agent } = useAgent({ agentId: AGENT, updates: [UseAgentUpdate.OnStateChanged] });
  const state = agent.state ?? {};
  const empty = Object.keys(state).length === 0;
  const progress: unknown = state.demo?.progress;

  return (
    <aside className="state" aria-label="Shared state">
      <h2>Shared state</h2>
      {typeof progress === "number" && <progress max={100} value={progress} />}
      {empty ? (
        <p className="quiet">Nothing yet. Say “state”.</p>
      ) : (
        <pre data-testid="state">{JSON.stringify(state, null, 2)}</pre>
      )}
    </aside>
  );
}
