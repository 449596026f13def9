// An activity: something the agent does that is no message. It is patched while it goes on.

import type { ReactActivityMessageRenderer } from "@copilotkit/react-core/v2";
import { z } from "zod";

const search = z.object({ query: z.string(), hits: z.array(z.unknown()) });

export const searches: ReactActivityMessageRenderer<z.infer<typeof search>> = {
  activityType: "SEARCH",
  content: search,
  render: ({ content }) => (
    <div className="card" data-testid="search">
      <span>
        Searching for <strong>{content.query}</strong>
      </span>
      <span className="quiet">{content.hits.length} hits</span>
    </div>
  ),
};
