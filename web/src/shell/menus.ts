/** The items of menus that the first view shows closed, loaded together after it. */

export { default as CallItems } from "../compose/CallItems.svelte";
export { default as SendItems } from "../compose/SendItems.svelte";
export { default as ChannelHeadItems } from "../messages/ChannelHeadItems.svelte";
export { default as PlaceItems } from "../messages/PlaceItems.svelte";
export { default as PolicyItems } from "../messages/PolicyItems.svelte";
export { default as TopicHeadItems } from "../messages/TopicHeadItems.svelte";
export { default as AccountMenu } from "./AccountMenu.svelte";
export { default as ChannelItems } from "./ChannelItems.svelte";
export { default as DirectItems } from "./DirectItems.svelte";
export { default as TopicMenu } from "./TopicMenu.svelte";
export { default as ViewItems } from "./ViewItems.svelte";
