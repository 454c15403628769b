/** Events of a queue. Their fields are read where they are folded. */

export interface ServerEvent {
  id: number;
  type: string;
  op?: string;
  [field: string]: unknown;
}
